"""The task: a Dec-POMDP as a pure function of state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

import numpy as np

from colearn.types import Outcome

Item = TypeVar("Item")
State = TypeVar("State")


class DecPOMDP(ABC, Generic[Item, State]):
    """A team's problem (I, S, O, A, R, T, H): each agent sees its own text, all share one reward.

    A state is immutable, and every method is a pure function of its arguments: a tree of rollouts
    branches without copying, steps run in a pool, an episode replays from (item, seed, actions).
    All randomness comes from the `rng` given. Settings are the constructor's keyword arguments.

    Simultaneous play: every agent observes at every turn. Sequential play, workflows and games:
    `observe` returns None for the agents that do not act now. A payoff per player goes into
    `Outcome.local_rewards`, the team's part into `Outcome.reward`.

    `colearn check NAME` and `colearn.testing.check_task` hold a task to this contract.
    """

    agents: tuple[str, ...]
    """I: the agents' names."""
    horizon: int
    """H: the most turns an episode has. The rollout ends an episode here; after it V = 0."""
    reward_range: tuple[float, float] | None = None
    """Bounds of one turn's joint reward where they are known; reports draw them."""

    @abstractmethod
    def items(self, split: str) -> Sequence[Item]:
        """D: the items of split 'train' or 'test'; never empty."""

    @abstractmethod
    def reset(self, item: Item, rng: np.random.Generator) -> State:
        """The state of turn 0."""

    @abstractmethod
    def observe(self, state: State, agent: str) -> str | None:
        """O_i: what `agent` is newly shown at this turn; None where it does not act.

        Earlier observations and actions stay in the agent's history, so return what is new only.
        """

    @abstractmethod
    def step(
        self, state: State, actions: Mapping[str, str], rng: np.random.Generator
    ) -> Outcome[State]:
        """T and R: the joint action of all agents that observed, to the next state and reward."""

    @abstractmethod
    def metrics(self, state: State) -> Mapping[str, float]:
        """What the final state is worth beside its reward (IoU, pass rate, ...); fixed keys."""

    def global_info(self, state: State) -> str:
        """m_t: text that critics may read in training and agents never see."""
        return ""

    def joint_observations(self, state: State) -> Mapping[str, str]:
        """The observations of all agents that act in `state`; empty where none does."""
        seen = {agent: self.observe(state, agent) for agent in self.agents}
        return {agent: text for agent, text in seen.items() if text is not None}
