"""SPIRAL: self-play with a moving baseline for each game and role (Liu et al. 2025)."""

from __future__ import annotations

from dataclasses import dataclass, field

from colearn.contract import Advantage, Credit, Rollout
from colearn.methods.advantage.self_play import RoleBaseline
from colearn.methods.credit.payoff import Payoff
from colearn.rollout.shapes import Chain

from ._policy import PolicyAlgorithm


@dataclass(frozen=True, kw_only=True)
class SpiralRAE(PolicyAlgorithm):
    """SPIRAL: REINFORCE with a moving baseline per game and role (RAE).

    The advantage of each turn is the player's episode return minus the baseline of the player's
    role.

    Wrong when games are long or pay rewards during play: every turn gets the same advantage.
    MARSHAL's appendix E compares SPIRAL with turn-level advantages in Hanabi.
    """

    rollout: Rollout = Chain()
    credit: Credit = Payoff()
    advantage: Advantage = field(default_factory=RoleBaseline)  # stateful: one instance per run
