"""MARLOO: REINFORCE leave-one-out for a team."""

from __future__ import annotations

from dataclasses import dataclass

from colearn.contract import Advantage
from colearn.methods.advantage.group_baseline import LeaveOneOut

from .magrpo import MAGRPO


@dataclass(frozen=True, kw_only=True)
class MARLOO(MAGRPO):
    """MARLOO: Eq. 1, where b(h_t) is the mean return of the other K - 1 joint actions of the same
    history.

    Wrong when you expect a difference from `magrpo` beyond the step size: within a group, the
    advantages of the two algorithms differ by the factor K / (K - 1).
    """

    advantage: Advantage = LeaveOneOut()
