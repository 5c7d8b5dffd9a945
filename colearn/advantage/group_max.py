"""The group's best return as the baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .group import GroupBaseline


@dataclass(frozen=True, kw_only=True)
class GroupMax(GroupBaseline):
    """A = G^k - max over the siblings (ReMax with a sampled maximum): 0 for the best, below for
    the others.

    Wrong when unbiased gradients matter: the maximum depends on the action it is compared with,
    and nothing is ever reinforced, only discouraged.
    """

    def compare(self, returns: Sequence[float]) -> Sequence[float]:
        best = max(returns)
        return [own - best for own in returns]
