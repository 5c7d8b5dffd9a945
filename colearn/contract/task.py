"""Task interface: a Dec-POMDP, given by pure functions of the task's state.

Optional interfaces of a task are in `colearn.contract.optional`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from colearn.types import Observation, Outcome

from .headline import Headline
from .optional import refuse_unread_members

Item = TypeVar("Item")
State = TypeVar("State")


class DecPOMDP(ABC, Generic[Item, State]):
    """A team's problem (I, S, O, A, R, T, H): each agent sees its own text, and all agents share
    one reward.

    States are immutable, and every method is a pure function of its arguments: rollout trees branch
    without copying, steps may run in a process pool, and (item, seed, actions) reproduce an
    episode. All randomness comes from `rng`. Settings are the constructor's keyword arguments.

    Simultaneous play: every agent observes at every turn. Sequential play, workflows and games:
    `observe` returns None for the agents that do not act at this turn. A payoff per player belongs
    in `Outcome.local_rewards`, and the team's part in `Outcome.reward`. A task with payoffs
    inherits `RewardStructure` and lists in `pays` the kinds of reward that it pays.

    A task class can also inherit optional interfaces, such as `LegalActions` or `Drawable`
    (`colearn.contract.optional`).

    `colearn check NAME` and `colearn.testing.check_task` check a task against this contract.
    """

    agents: tuple[str, ...]
    """I: the agents' names."""
    horizon: int
    """H: the maximum number of turns. The rollout ends an episode after this number of turns; V is
    0 at the end."""
    headline: Headline = Headline()
    """The metric that is used to compare runs: `return` (the team's reward, or the players' mean
    payoff if the task pays no team reward) or one of `metrics`. `evaluation.headline` overrides
    it."""

    def __init_subclass__(cls, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        refuse_unread_members(cls)

    @abstractmethod
    def items(self, split: str) -> Sequence[Item]:
        """D: the items of split 'train' or 'test'; never empty."""

    @abstractmethod
    def reset(self, item: Item, rng: np.random.Generator) -> State:
        """The state of turn 0."""

    @abstractmethod
    def observe(self, state: State, agent: str) -> str | Observation | None:
        """O_i: the new observation of `agent` at this turn; None if the agent does not act.

        Earlier observations and actions stay in the agent's history, so return only new text, or an
        `Observation` with `fresh=True`, which opens a new context. The agent's player adds the
        tokens of an `Observation`.
        """

    @abstractmethod
    def step(
        self, state: State, actions: Mapping[str, str], rng: np.random.Generator
    ) -> Outcome[State]:
        """T and R: the next state and reward for the joint action of all acting agents.

        The rollout passes each action's text without its reasoning (`<think>...</think>`, whole or
        cut); the recorded action keeps its reasoning.
        """

    @abstractmethod
    def metrics(self, state: State) -> Mapping[str, float | None]:
        """Additional metrics of the final state (IoU, pass rate, ...), with fixed keys. In a game,
        `payoff_AGENT` is a player's payoff; in a league, payoffs determine the winner. A metric
        with the value None was not measured and is excluded from means."""

    def global_info(self, state: State) -> str:
        """m_t: text for centralised and decentralised critics in training, such as the turn and the
        last reward (CoLLM, E.3). Agents never see it."""
        return ""


def joint_observations(task: DecPOMDP[Any, Any], state: Any) -> dict[str, Observation]:
    """The observations of all agents that act in `state`, by agent."""
    observations = {agent: task.observe(state, agent) for agent in task.agents}
    return {
        agent: observation if isinstance(observation, Observation) else Observation(observation)
        for agent, observation in observations.items()
        if observation is not None
    }
