"""Base class of the shipped algorithms: a choice of parts, each configurable."""

from __future__ import annotations

from dataclasses import dataclass

from colearn.contract import Advantage, Algorithm, Credit, Critic, Parts, PolicyLoss, Rollout
from colearn.contract.algorithm import ValueLoss
from colearn.methods.credit.shared_reward import SharedReward
from colearn.methods.loss.policy_gradient import PolicyGradient


@dataclass(frozen=True, kw_only=True)
class PolicyAlgorithm(Algorithm):
    """Base class of algorithms whose parts a config can replace (`algorithm.credit.name`) or
    configure (`algorithm.loss.clip`)."""

    rollout: Rollout
    """Rollout shape: how episodes branch."""
    credit: Credit = SharedReward()
    """Credit assignment: maps task rewards to per-agent rewards."""
    advantage: Advantage
    """Advantage estimator."""
    loss: PolicyLoss = PolicyGradient()
    """Policy loss."""
    critic: Critic | None = None
    """Critic: defines the text that a value model reads and the agents whose values it predicts;
    None: no value model."""
    value_loss: ValueLoss = ValueLoss()
    """Value loss and value targets of the critic."""
    discount: float = 1.0
    """Discount factor gamma per turn."""
    missing_turn_reward: float | None = None
    """Treatment of a truncated episode, which a full context or a limit of the task's program cut
    before it ended. Where a critic gives V of the history at the cut, returns bootstrap from this
    V, and the setting has no effect. Elsewhere, every missing turn up to the horizon, and at least
    one, is credited with this reward to every agent; a good choice is the reward of a failed turn.
    None: returns that include missing turns are neither trained on nor used in a baseline."""

    def parts(self) -> Parts:
        return Parts(
            rollout=self.rollout,
            credit=self.credit,
            advantage=self.advantage,
            loss=self.loss,
            critic=self.critic,
            value_loss=self.value_loss,
            discount=self.discount,
            missing_turn_reward=self.missing_turn_reward,
        )
