"""An algorithm: a name, a docstring and a choice of parts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from colearn.anneal import left
from colearn.bounds import Anneal, Expectile, Positive, check_bounds
from colearn.errors import ConfigError
from colearn.types import Credited, Tree

from .advantage import Advantage
from .credit import Credit
from .critic import Critic
from .loss import PolicyLoss
from .rollout import Rollout
from .task import DecPOMDP


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueLoss:
    """Squared error of the critic, Eq. 3 and 5 of CoLLM, with PPO's optional value clip."""

    coefficient: Positive = 1.0
    clip: Positive | None = None
    """Keep V within +-clip of its value at rollout (pessimistic maximum of both errors)."""
    frozen_targets: bool = False
    """Targets and advantages of all epochs come from the critic as it was at rollout, not from the
    current one, which has seen these returns by then."""
    expectile: Expectile = 0.5
    """tau of the expectile that V estimates; 1/2 is the mean."""
    anneal_fraction: Anneal | None = None
    """The fraction of the training budget over which `expectile` anneals to 1/2; None: constant."""
    rescale: bool = False
    """The head speaks in units of the returns seen so far: V = centre + deviation * output, where
    the centre is their `expectile`. It starts at that of the first iteration's returns, not at 0,
    so no shift of the reward passes for an advantage before the critic has learned it."""

    def __post_init__(self) -> None:
        check_bounds(self)

    def at(self, done: float) -> ValueLoss:
        """The settings when the share `done` of the training budget is used."""
        expectile = 0.5 + (self.expectile - 0.5) * left(self.anneal_fraction, done)
        return replace(self, expectile=expectile, anneal_fraction=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Rollout x credit x advantage (with or without critic) x policy loss."""

    rollout: Rollout
    credit: Credit
    advantage: Advantage
    loss: PolicyLoss
    critic: Critic | None = None
    value_loss: ValueLoss = ValueLoss()
    discount: float = 1.0
    """gamma, between turns."""

    def credited(self, trees: Sequence[Tree[Any]]) -> list[Credited[Any]]:
        """What the algorithm learns from."""
        return [
            Credited(tree=tree, rewards=self.credit(tree), discount=self.discount) for tree in trees
        ]

    def at(self, done: float) -> Parts:
        """The parts when the share `done` of the training budget is used."""
        return replace(
            self,
            advantage=self.advantage.at(done),
            loss=self.loss.at(done),
            value_loss=self.value_loss.at(done),
        )


class Algorithm(ABC):
    """A frozen dataclass of hyper-parameters that chooses parts; it knows no device, no model."""

    learns: ClassVar[bool] = True
    """False: a run is one evaluation; no model is trained, no critic loaded, no budget used."""

    @abstractmethod
    def parts(self) -> Parts:
        """The parts this algorithm is made of."""

    def check_team(self, agents: Sequence[str]) -> None:  # noqa: B027 - most fit any team
        """Errors: ConfigError where the algorithm cannot train a team of these agents."""

    def check_task(self, task: DecPOMDP[Any, Any]) -> None:
        """Errors: ConfigError where the algorithm cannot train this team, reads only rewards that
        the task never pays, compares candidates by rewards that come later, or has one value for
        players whose payoffs differ."""
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
        readers = {} if critic is None else critic.readers(task.agents)
        if "team" not in task.pays and any(len(agents) > 1 for agents in readers.values()):
            raise ConfigError(
                f"algorithm.critic: {type(critic).__name__} has one value for all, and the task "
                "pays each player its own; set algorithm.critic.name to decentralized, which "
                "privileged_info: true tells what no player sees as well"
            )

    def checked_parts(self) -> Parts:
        """`parts`, after checking that they fit each other.

        Errors: ConfigError for a group baseline without a group, values without a critic, or a
        future that is compared where the shape cuts branches.
        """
        parts = self.parts()
        name = type(self).__name__
        if not 0.0 <= parts.discount <= 1.0:
            raise ConfigError(f"discount: must lie in 0 to 1, got {parts.discount}; 1.0 is usual")
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
    """Errors: ConfigError where what comes after an action counts, and the shape goes on from some
    of the candidates alone."""
    shape = type(parts.rollout).__name__
    if parts.advantage.reads_future:
        raise ConfigError(
            f"advantage: {type(parts.advantage).__name__} compares what comes after an "
            f"action, and {shape} goes on from the best candidate alone; set "
            "algorithm.advantage.name to agent_turn or question, or algorithm.rollout.name to tree "
            "or parallel"
        )
    if not parts.credit.at_once:
        raise ConfigError(
            f"credit: {type(parts.credit).__name__} credits an action by more than its "
            f"own step, and {shape} chooses the best candidate at once; set algorithm.credit.name "
            "to mixed, team or payoff, or algorithm.rollout.name to tree or parallel"
        )


def _check_read_once(parts: Parts, name: str) -> None:
    """Errors: ConfigError where the values of a critic that is read once would be read again, or
    where the shape draws nothing for it to read."""
    critic = type(parts.critic).__name__
    if not parts.value_loss.frozen_targets:
        raise ConfigError(
            f"value_loss.frozen_targets: {critic} is read once, before the update; set it to true"
        )
    if not parts.rollout.draws_alternatives:
        raise ConfigError(
            f"rollout: {name} compares actions with others that were drawn and not executed, and "
            f"{type(parts.rollout).__name__} draws none; set algorithm.rollout.name to "
            "counterfactual_chain"
        )


def _values(kind: str | None) -> str:
    return "no critic" if kind is None else f"a critic of {kind} values"
