"""MAReMax: the group's best return as the baseline, for a team."""

from __future__ import annotations

from dataclasses import dataclass

from colearn.contract import Advantage
from colearn.methods.advantage.group_baseline import GroupMax

from .magrpo import MAGRPO


@dataclass(frozen=True, kw_only=True)
class MAReMax(MAGRPO):
    """MAReMax: Eq. 1 with b(h_t) = max of G_t^k over the K joint actions of the same history.

    Wrong when actions are long or K is large: advantages are never positive, so the update only
    lowers the probabilities of sampled actions. The freed probability mass moves to arbitrary other
    actions.
    """

    advantage: Advantage = GroupMax()
