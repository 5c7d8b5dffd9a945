"""Discussion: agents see at each turn what the others wrote at the turn before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from colearn.contract import DecPOMDP
from colearn.types import Outcome

from .quote import with_outputs

Item = TypeVar("Item")
State = TypeVar("State")


@dataclass(frozen=True, slots=True)
class DiscussionState(Generic[State]):
    """The task's state and what was written at the last turn."""

    inner: State
    outputs: tuple[tuple[str, str], ...] = ()


class Discussion(DecPOMDP[Item, DiscussionState[State]]):
    """Two-way communication as in multi-agent debate (section 6.2).

    Each observation is followed by the other agents' outputs of the previous turn. There are as
    many rounds as the task has turns, so a task of one turn is played as in `parallel`.
    """

    def __init__(self, task: DecPOMDP[Item, State]) -> None:
        self.task = task
        self.agents = task.agents
        self.horizon = task.horizon
        self.reward_range = task.reward_range

    def items(self, split: str) -> Sequence[Item]:
        """The task's."""
        return self.task.items(split)

    def reset(self, item: Item, rng: np.random.Generator) -> DiscussionState[State]:
        """The task's first state, nothing written yet."""
        return DiscussionState(self.task.reset(item, rng))

    def observe(self, state: DiscussionState[State], agent: str) -> str | None:
        """The task's observation and the others' last outputs; None where the task says so."""
        text = self.task.observe(state.inner, agent)
        if text is None:
            return None
        others = ((other, said) for other, said in state.outputs if other != agent)
        return with_outputs(text, others, "in the previous turn")

    def step(
        self, state: DiscussionState[State], actions: Mapping[str, str], rng: np.random.Generator
    ) -> Outcome[DiscussionState[State]]:
        """The task's step; the outputs are kept for the next turn."""
        outcome = self.task.step(state.inner, actions, rng)
        outputs = tuple((agent, actions[agent]) for agent in self.agents if agent in actions)
        return Outcome(
            state=DiscussionState(outcome.state, outputs),
            reward=outcome.reward,
            done=outcome.done,
            local_rewards=outcome.local_rewards,
        )

    def metrics(self, state: DiscussionState[State]) -> Mapping[str, float]:
        """The task's."""
        return self.task.metrics(state.inner)

    def global_info(self, state: DiscussionState[State]) -> str:
        """The task's."""
        return self.task.global_info(state.inner)
