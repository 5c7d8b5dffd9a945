"""Discussion: at each turn agents see the other agents' outputs of the previous turn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np

from colearn.contract import DecPOMDP, joint_observations, text_of
from colearn.contract.types import Observation, Outcome

from .quote import with_outputs
from .wrapper import Wrapper

Item = TypeVar("Item")
State = TypeVar("State")

_FINAL = "Everyone has written a draft. Write your final answer."


@dataclass(frozen=True, slots=True)
class DiscussionState(Generic[State]):
    """The task's state and the outputs of the last turn."""

    inner: State
    outputs: tuple[tuple[str, str], ...] = ()
    turn: int = 0
    """Turns so far, the round of drafts included."""


class Discussion(Wrapper[Item, State, DiscussionState[State]]):
    """Two-way communication as in multi-agent debate (section 6.2).

    The wrapper appends the other agents' outputs of the previous turn to each observation. The
    number of rounds is the number of the task's turns. If the task has only one turn, a round of
    drafts precedes this turn, as in the paper's table 1, where a discussion takes two rounds. The
    task neither receives nor rewards the drafts.
    """

    def __init__(self, inner: DecPOMDP[Item, State]) -> None:
        super().__init__(inner)
        self.drafts = inner.horizon == 1
        if self.drafts:
            self.horizon = 2
            if self.reward_range is not None:
                low, high = self.reward_range
                self.reward_range = (min(low, 0.0), max(high, 0.0))

    def reset(self, item: Item, rng: np.random.Generator) -> DiscussionState[State]:
        """The task's first state, without outputs."""
        return DiscussionState(self.inner.reset(item, rng))

    def observe(self, state: DiscussionState[State], agent: str) -> Observation | None:
        """The task's observation and the other agents' last outputs; None if the task returns
        None."""
        prompt = joint_observations(self.inner, state.inner).get(agent)
        if prompt is None:
            return None
        if self.drafts and state.outputs:
            prompt = Observation(_FINAL)
        before = state.turn - 1
        others = {
            (before, speaker): output for speaker, output in state.outputs if speaker != agent
        }
        return with_outputs(prompt, others, "in the previous turn")

    def send(
        self, state: DiscussionState[State], actions: Mapping[str, Any]
    ) -> DiscussionState[State]:
        """Forwarded to the task, except in a round of drafts."""
        if self.drafts and not state.outputs:
            return state
        return replace(state, inner=self.inner.send(state.inner, actions))

    def step(
        self, state: DiscussionState[State], actions: Mapping[str, str], rng: np.random.Generator
    ) -> Outcome[DiscussionState[State]]:
        """Executes the task's step and keeps the outputs for the next turn. In a round of drafts,
        only the outputs are kept."""
        outputs = tuple(
            (agent, text_of(actions[agent])) for agent in self.agents if agent in actions
        )
        if self.drafts and not state.outputs:
            return Outcome(state=DiscussionState(state.inner, outputs, 1), reward=0.0)
        outcome = self.inner.step(state.inner, actions, rng)
        return Outcome(
            state=DiscussionState(outcome.state, outputs, state.turn + 1),
            reward=outcome.reward,
            done=outcome.done,
            truncated=outcome.truncated,
            local_rewards=outcome.local_rewards,
            earned={
                (turn + self.drafts, agent): reward
                for (turn, agent), reward in outcome.earned.items()
            },
        )
