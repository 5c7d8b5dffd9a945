"""MA-REINFORCE: Monte-Carlo returns without a baseline (Peshkin et al. 2001)."""

from __future__ import annotations

from dataclasses import dataclass

from colearn.contract import Advantage
from colearn.methods.advantage.raw_return import RawReturn

from .magrpo import MAGRPO


@dataclass(frozen=True, kw_only=True)
class MAREINFORCE(MAGRPO):
    """MA-REINFORCE: Eq. 1 with b = 0.

    `rollout.k: 1` is the original algorithm; a larger K only averages over more samples
    (Proposition 4.1).

    Wrong when the mean reward is far from 0: use a baseline, which costs nothing extra.
    """

    advantage: Advantage = RawReturn()
