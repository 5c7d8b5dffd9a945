"""The group's expectile as the baseline: a team that hopes for the best of what it saw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from .expectile import MEAN, check_level, expectile, faded, weighted
from .group import GroupBaseline


@dataclass(frozen=True, kw_only=True)
class GroupExpectile(GroupBaseline):
    """A = w (G^k - e) with the siblings' tau-expectile e, w = 2 tau above it and 2 (1 - tau) below.

    The weights sum the group's advantages to 0, and in expectation A follows the gradient of the
    expectile of the return instead of its mean (Newey and Powell 1987; in value learning Kostrikov
    et al. 2022). Above 1/2 a joint action that succeeds with one reply of the others counts more
    than the failures with all other replies, as in hysteretic and lenient learning.

    Wrong when rewards are random: luck is then taken for skill.
    """

    level: float = MEAN
    """tau; 1/2 is `GroupMean`."""
    anneal: float | None = None
    """The share of the training budget over which `level` comes to 1/2; None keeps it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_level(self.level, "level", self.anneal)

    def at(self, done: float) -> GroupExpectile:
        return replace(self, level=faded(self.level, self.anneal, done), anneal=None)

    def compare(self, returns: Sequence[float]) -> Sequence[float]:
        baseline = expectile(returns, self.level)
        return [weighted(own - baseline, self.level) for own in returns]
