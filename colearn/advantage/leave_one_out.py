"""The mean of the other joint actions as the baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .group import GroupBaseline


@dataclass(frozen=True, kw_only=True)
class LeaveOneOut(GroupBaseline):
    """A = G^k minus the mean of the other siblings (RLOO): unbiased at every K.

    Wrong when K is 2 and rewards are heavy-tailed: one sibling alone is the baseline.
    """

    def compare(self, returns: Sequence[float]) -> Sequence[float]:
        total, others = sum(returns), len(returns) - 1
        return [own - (total - own) / others for own in returns]
