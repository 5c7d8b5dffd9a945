"""Algorithm interface: hyper-parameters and a choice of parts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any, ClassVar

from colearn.contract.anneal import MEAN, faded
from colearn.contract.bounds import Anneal, Expectile, Positive, check_bounds
from colearn.contract.types import Tree
from colearn.errors import ConfigError

from .advantage import Advantage
from .critic import Critic
from .loss import PolicyLoss
from .part_errors import calling_part
from .reward_credit import Credit
from .rollout import Rollout
from .task import DecPOMDP


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueLoss:
    """Squared error of the critic (Eq. 3 and 5 of CoLLM), optionally with PPO's value clipping."""

    coefficient: Positive = 1.0
    """Factor of the value loss."""
    clip: Positive | None = None
    """Maximum difference between the current V and the V recorded at rollout; V is clipped to this
    range. The loss is the maximum of the clipped and the unclipped error."""
    frozen_targets: bool = False
    """Whether the targets and advantages of all epochs come from the critic as it was at rollout.
    Freezing avoids a bias: after the first optimiser step, the current critic has already been
    trained on the returns of this rollout."""
    expectile: Expectile = MEAN
    """tau of the expectile that V estimates; 1/2 is the mean."""
    anneal_fraction: Anneal | None = None
    """The fraction of the training budget over which `expectile` anneals to 1/2; None: constant."""
    rescale: bool = False
    """Whether to scale the value head's output by the returns seen so far: V = centre + deviation *
    output, where the centre is the `expectile` of these returns. V starts at the centre of the
    first iteration's returns instead of 0. A constant offset in the rewards then does not affect
    advantages at the start of training."""

    def __post_init__(self) -> None:
        check_bounds(self)

    def at(self, done: float) -> ValueLoss:
        """Returns the settings that apply when the fraction `done` of the training budget has been
        used."""
        if self.anneal_fraction is None:
            return self
        level = faded(self.expectile, self.anneal_fraction, done)
        return replace(self, expectile=level, anneal_fraction=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Parts of an algorithm: rollout, credit, advantage, policy loss and, optionally, a critic."""

    rollout: Rollout
    credit: Credit
    advantage: Advantage
    loss: PolicyLoss
    critic: Critic | None = None
    value_loss: ValueLoss = ValueLoss()
    discount: float = 1.0
    """Discount factor gamma between turns."""
    missing_turn_reward: float | None = None
    """Reward of every missing turn of a truncated episode, where no critic gives a value; None:
    returns that include missing turns are neither trained on nor used in a baseline."""

    @property
    def fixed_advantages(self) -> bool:
        """Whether advantages are computed once for all minibatches of an iteration."""
        return self.value_loss.frozen_targets or not self.advantage.reads

    def credited(self, trees: Sequence[Tree[Any]]) -> list[Tree[Any]]:
        """The trees with their credited rewards."""
        trees = [replace(tree, missing_turn_reward=self.missing_turn_reward) for tree in trees]
        with calling_part("algorithm.credit", self.credit):
            return [tree.credited(self.credit(tree), discount=self.discount) for tree in trees]

    def at(self, done: float) -> Parts:
        """Returns the parts that apply when the fraction `done` of the training budget has been
        used."""
        with calling_part("algorithm.advantage", self.advantage):
            advantage = self.advantage.at(done)
        with calling_part("algorithm.loss", self.loss):
            loss = self.loss.at(done)
        return replace(self, advantage=advantage, loss=loss, value_loss=self.value_loss.at(done))


class Algorithm(ABC):
    """A frozen dataclass of hyper-parameters from which the algorithm's parts are built;
    independent of device and model."""

    learns: ClassVar[bool] = True
    """False: a run consists of one evaluation, without training, critic or budget."""

    @abstractmethod
    def parts(self) -> Parts:
        """The parts of this algorithm."""

    def check_team(self, agents: Sequence[str]) -> None:  # noqa: B027 - most fit any team
        """Errors: ConfigError if the algorithm cannot train a team of these agents."""

    def check_task(self, task: DecPOMDP[Any, Any]) -> None:
        """Errors: ConfigError if the algorithm cannot train this task's team, or reads only rewards
        that the task never pays. ConfigError also if the algorithm forks the episodes of a program,
        compares candidate actions by immediate rewards although the task pays later, or estimates
        one value for players whose payoffs differ."""
        self.check_team(task.agents)
        credit, rollout = self.parts().credit, self.parts().rollout
        if not credit.reads & task.pays:
            paid = " and ".join(sorted(task.pays))
            remedy = "payoff" if "local" in task.pays else "team"
            raise ConfigError(
                f"algorithm.credit: {type(credit).__name__} reads "
                f"{' and '.join(sorted(credit.reads))} rewards, and the task pays {paid} rewards "
                f"only; set algorithm.credit.name to {remedy}"
            )
        if task.program and rollout.forks_later:
            raise ConfigError(
                f"algorithm.rollout: {type(rollout).__name__} forks episodes after their first "
                "turn, and a program that runs cannot be forked; set algorithm.rollout.name to "
                "chain or parallel"
            )
        if rollout.cuts and task.pays_later and "local" in credit.reads:
            raise ConfigError(
                f"algorithm.rollout: {type(rollout).__name__} compares candidates by what they are "
                "paid at once, and the task pays actions at later turns; set algorithm.name to "
                "mappo or mhgpo, or algorithm.rollout.name to tree or parallel"
            )
        critic = self.parts().critic
        with calling_part("algorithm.critic", critic):
            readers = {} if critic is None else critic.readers(task.agents)
        if "team" not in task.pays and any(len(agents) > 1 for agents in readers.values()):
            raise ConfigError(
                f"algorithm.critic: {type(critic).__name__} has one value for all, and the task "
                "pays each player its own; set algorithm.critic.name to decentralized; with "
                "privileged_info: true it also reads what no player sees"
            )

    def checked_parts(self) -> Parts:
        """`parts`, after a check that they are compatible.

        Errors: ConfigError for a group baseline without a group, an advantage without its critic,
        or a comparison of later rewards when the rollout shape cuts branches.
        """
        parts = self.parts()
        name = type(self).__name__
        if not 0.0 <= parts.discount <= 1.0:
            raise ConfigError(f"discount: must lie in 0 to 1, got {parts.discount}; 1.0 is usual")
        if parts.missing_turn_reward is not None and not isfinite(parts.missing_turn_reward):
            raise ConfigError(
                f"missing_turn_reward: must be finite, got {parts.missing_turn_reward}; set it to "
                "the reward of a failed turn, or leave it out"
            )
        if parts.rollout.group_size < parts.advantage.minimum_group:
            raise ConfigError(
                f"rollout.k: {name} compares {parts.advantage.minimum_group} or more joint "
                f"actions per history, got K={parts.rollout.group_size}; set it to 2 or more"
            )
        value = None if parts.critic is None else parts.critic.value
        if parts.advantage.reads != value:
            raise ConfigError(
                f"advantage: {type(parts.advantage).__name__} reads "
                f"{_values(parts.advantage.reads)}, and {name} has {_values(value)}; choose an "
                "advantage and a critic that fit (critic.value: v or q)"
            )
        if parts.rollout.cuts:
            _check_cuts(parts)
        if parts.critic is not None and parts.critic.read_once:
            _check_read_once(parts, name)
        if parts.advantage.by_token and not parts.loss.by_token:
            raise ConfigError(
                f"loss.ratio: {name} has an advantage for each token; set it to token"
            )
        return parts


def _check_cuts(parts: Parts) -> None:
    """Errors: ConfigError if the advantage or the credit uses later rewards but the rollout shape
    continues only some candidates."""
    shape = type(parts.rollout).__name__
    if parts.advantage.reads_future:
        raise ConfigError(
            f"advantage: {type(parts.advantage).__name__} compares rewards after an "
            f"action, and {shape} continues from the best candidate alone; set "
            "algorithm.advantage.name to agent_turn or question, or algorithm.rollout.name to tree "
            "or parallel"
        )
    if not parts.credit.at_once:
        raise ConfigError(
            f"credit: {type(parts.credit).__name__} credits an action by later steps "
            f"too, and {shape} chooses the best candidate at once; set algorithm.credit.name "
            "to mixed, team or payoff, or algorithm.rollout.name to tree or parallel"
        )


def _check_read_once(parts: Parts, name: str) -> None:
    """Errors: ConfigError if a `read_once` critic would be read again, or if the rollout shape
    draws no alternative actions for this critic."""
    critic = type(parts.critic).__name__
    if not parts.value_loss.frozen_targets:
        raise ConfigError(
            f"value_loss.frozen_targets: {critic} is read once, before the update; set it to true"
        )
    if not parts.rollout.draws_alternatives:
        raise ConfigError(
            f"rollout: {name} compares actions with alternatives that are not executed, and "
            f"{type(parts.rollout).__name__} draws none; set algorithm.rollout.name to "
            "counterfactual_chain"
        )


def _values(kind: str | None) -> str:
    return "no critic" if kind is None else f"a critic of {kind} values"
