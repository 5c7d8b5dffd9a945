"""MAGRPO: group-relative returns for a team (Liu et al. 2026a)."""

from __future__ import annotations

from dataclasses import dataclass

from colearn.advantage.group_mean import GroupMean

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

    def baseline(self) -> GroupMean:
        return GroupMean(
            discount=self.discount, clip=self.advantage_clip, normalize_std=self.normalize_std
        )
