"""MAReMax: the group's best return as the baseline, for a team."""

from __future__ import annotations

from dataclasses import dataclass

from colearn.advantage.group_baseline import GroupMax
from colearn.contract import Advantage

from .magrpo import MAGRPO


@dataclass(frozen=True, kw_only=True)
class MAReMax(MAGRPO):
    """Eq. 1 with b(h_t) = max over the K joint actions of the same history of G_t^k.

    Wrong when actions are long or K is large: it only pushes probabilities down, and the
    mass it frees goes anywhere.
    """

    advantage: Advantage = GroupMax()
