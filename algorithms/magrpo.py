"""MAGRPO: group-relative returns for a team (Liu et al. 2026a)."""

from __future__ import annotations

from dataclasses import dataclass

from colearn.contract import Advantage, Rollout
from colearn.methods.advantage.group_baseline import GroupMean
from colearn.rollout.shapes import KaryTree

from ._policy import PolicyAlgorithm


@dataclass(frozen=True, kw_only=True)
class MAGRPO(PolicyAlgorithm):
    """MAGRPO: the baseline is the mean return over sibling joint actions (Eq. 1).

    b(h_t) = (1/K) sum of G_t^k over the K joint actions of the same joint history; all agents share
    the advantage G_t^k - b(h_t).

    Wrong when the horizon is long: the tree costs n K (K^H - 1) / (K - 1) generations (Proposition
    4.3). Wrong when each role has different rewards: the returns of sibling actions are then not
    comparable.
    """

    rollout: Rollout = KaryTree()
    advantage: Advantage = GroupMean()
