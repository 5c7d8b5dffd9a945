"""What the shipped algorithms share: a choice of parts, each a setting with its own settings."""

from __future__ import annotations

from dataclasses import dataclass

from colearn.contract import Advantage, Algorithm, Credit, Critic, Parts, PolicyLoss, Rollout
from colearn.contract.algorithm import ValueLoss
from colearn.credit.team import Team
from colearn.loss.policy_gradient import PolicyGradient


@dataclass(frozen=True, kw_only=True)
class PolicyAlgorithm(Algorithm):
    """Any part can be exchanged (`algorithm.advantage.name`) or set (`algorithm.loss.clip`)."""

    rollout: Rollout
    """How episodes branch."""
    credit: Credit = Team()
    """Which rewards count, and for whom."""
    advantage: Advantage
    """What an action was worth."""
    loss: PolicyLoss = PolicyGradient()
    critic: Critic | None = None
    value_loss: ValueLoss = ValueLoss()
    discount: float = 1.0
    """gamma."""

    def parts(self) -> Parts:
        return Parts(
            rollout=self.rollout,
            credit=self.credit,
            advantage=self.advantage,
            loss=self.loss,
            critic=self.critic,
            value_loss=self.value_loss,
            discount=self.discount,
        )
