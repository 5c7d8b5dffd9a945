"""SPIRAL: self-play with a moving baseline for each game and role (Liu et al. 2025)."""

from __future__ import annotations

from dataclasses import dataclass, field

from colearn.advantage.self_play.role_baseline import RoleBaseline
from colearn.contract import Advantage, Credit, Rollout
from colearn.credit.payoff import Payoff
from colearn.rollout.shapes import Chain

from ._policy import PolicyAlgorithm


@dataclass(frozen=True, kw_only=True)
class SpiralRAE(PolicyAlgorithm):
    """REINFORCE on a player's whole return less its role's moving baseline, for each of its turns.

    Wrong when games are long or pay on the way: MARSHAL's appendix E measures it against
    turn-level advantages in Hanabi.
    """

    rollout: Rollout = Chain()
    credit: Credit = Payoff()
    advantage: Advantage = field(default_factory=RoleBaseline)  # it remembers: one for each run
