"""MAGRPO: group-relative returns for a team (Liu et al. 2026a)."""

from __future__ import annotations

from dataclasses import dataclass

from colearn.advantage.expectile import MEAN
from colearn.advantage.group_expectile import GroupExpectile
from colearn.advantage.group_mean import GroupMean
from colearn.contract import Advantage
from colearn.errors import ConfigError

from ._group import GroupAlgorithm


@dataclass(frozen=True, kw_only=True)
class MAGRPO(GroupAlgorithm):
    """Eq. 1 with b(h_t) = (1/K) sum of G_t^k over the K joint actions of the same joint history;
    all agents share the advantage.

    Wrong when the horizon is long: the tree costs n K (K^H - 1) / (K - 1) generations
    (Proposition 4.3). Wrong when rewards differ per role: the group then compares unlike things.
    """

    normalize_std: bool = False
    """Divide by the group's standard deviation; off in the paper."""

    expectile: float = MEAN
    """tau: the baseline is this expectile of the group's returns, and what lies above it weighs
    tau : 1 - tau. Near 1 the team escapes equilibria that are safe and poor; wrong where rewards
    are random."""

    def baseline(self) -> Advantage:
        if self.expectile == MEAN:
            return GroupMean(
                discount=self.discount,
                clip=self.advantage_clip,
                equal_turns=self.equal_turns,
                normalize_std=self.normalize_std,
            )
        if self.normalize_std:
            raise ConfigError(
                "algorithm.normalize_std: has no meaning with an expectile; set one of the two"
            )
        return GroupExpectile(
            discount=self.discount,
            clip=self.advantage_clip,
            equal_turns=self.equal_turns,
            level=self.expectile,
        )
