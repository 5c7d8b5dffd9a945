"""What the actor-critic algorithms share: one chain per episode, and a critic to choose."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Literal

from colearn.advantage.gae import GAE
from colearn.advantage.monte_carlo_value import MonteCarloValue
from colearn.advantage.n_step import NStep
from colearn.advantage.q_value import QValue
from colearn.advantage.td_error import TDError
from colearn.contract import Advantage, Algorithm, Critic, Parts
from colearn.contract.algorithm import ValueLoss
from colearn.errors import ConfigError
from colearn.rollout.chain import Chain

from ._policy import PolicySettings


@dataclass(frozen=True, kw_only=True)
class ActorCritic(PolicySettings, Algorithm):
    value: Literal["v", "q"] = "v"
    """What the critic estimates; Q is trained on SARSA targets."""
    bootstrap: Literal["td", "n_step", "gae", "mc"] = "td"
    n: int = 2
    """Turns before the bootstrap, for `n_step`."""
    lam: float = 0.95
    """lambda, for `gae`."""
    normalize_advantage: bool = False
    """Zero mean, unit deviation per agent and minibatch."""
    global_info: bool = True
    """The critic reads m_t."""
    value_coefficient: float = 1.0
    value_clip: float | None = None
    frozen_targets: bool = False
    """Bootstrap from the critic as it was at rollout."""
    expectile: float = 0.5
    """tau: V estimates this expectile of the return and the actors climb it; 1/2 is the mean. Near
    1 the team escapes equilibria that are safe and poor; wrong where rewards are random."""

    @abstractmethod
    def critic(self) -> Critic:
        """Whose histories the critic reads."""

    def parts(self) -> Parts:
        return Parts(
            rollout=Chain(),
            critic=self.critic(),
            advantage=self._advantage(),
            loss=self.policy_loss(),
            value_loss=self._value_loss(),
        )

    def _value_loss(self) -> ValueLoss:
        for name, number in (("coefficient", self.value_coefficient), ("clip", self.value_clip)):
            if number is not None and number <= 0.0:
                raise ConfigError(f"algorithm.value_{name}: must be above 0, got {number}")
        return ValueLoss(
            coefficient=self.value_coefficient,
            clip=self.value_clip,
            frozen_targets=self.frozen_targets,
            expectile=self.expectile,
        )

    def _advantage(self) -> Advantage:
        if self.value == "q":
            if self.bootstrap != "td":
                raise ConfigError("algorithm.bootstrap: a Q critic has td only; set value to v")
            if self.expectile != 0.5:
                raise ConfigError(
                    "algorithm.expectile: a Q critic estimates the mean only; set value to v"
                )
            return QValue(
                discount=self.discount, clip=self.advantage_clip, normalize=self.normalize_advantage
            )
        if self.value != "v":
            raise ConfigError(f"algorithm.value: unknown '{self.value}'; use v or q")
        common: dict[str, Any] = {
            "discount": self.discount,
            "clip": self.advantage_clip,
            "normalize": self.normalize_advantage,
            "expectile": self.expectile,
        }
        match self.bootstrap:
            case "td":
                return TDError(**common)
            case "n_step":
                return NStep(n=self.n, **common)
            case "gae":
                return GAE(lam=self.lam, **common)
            case "mc":
                return MonteCarloValue(**common)
        raise ConfigError(
            f"algorithm.bootstrap: unknown '{self.bootstrap}'; use td, n_step, gae or mc"
        )
