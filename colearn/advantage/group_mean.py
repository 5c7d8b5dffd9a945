"""The group's mean return as the baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .finish import EPSILON, deviation
from .group import GroupBaseline


@dataclass(frozen=True, kw_only=True)
class GroupMean(GroupBaseline):
    """A = G^k - (1/K) sum over the siblings, itself included (MAGRPO, CoLLM Sec. 6.2).

    Wrong when K is small: its own return pulls the baseline, so A is (K-1)/K of `LeaveOneOut`'s.
    """

    normalize_std: bool = False
    """Divide by the siblings' population deviation + 1e-6 (GRPO). Off in the paper: an item
    on which the team almost always does the same then weighs as much as an open one."""

    def compare(self, returns: Sequence[float]) -> Sequence[float]:
        mean = sum(returns) / len(returns)
        scale = deviation(returns) + EPSILON if self.normalize_std else 1.0
        return [(own - mean) / scale for own in returns]
