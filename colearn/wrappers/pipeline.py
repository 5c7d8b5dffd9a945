"""Pipeline: within a turn agents act one after another and see what earlier ones wrote."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from colearn.contract import DecPOMDP
from colearn.types import Outcome

from .quote import with_outputs
from .wrapper import Wrapper

Item = TypeVar("Item")
State = TypeVar("State")


@dataclass(frozen=True, slots=True)
class PipelineState(Generic[State]):
    """The task's state, and who has already written what in this turn."""

    inner: State
    turn: int
    """Turns of the task that are complete."""
    outputs: tuple[tuple[str, str], ...] = ()


class Pipeline(Wrapper[Item, State, PipelineState[State]]):
    """One-way communication (section 6.2): each turn of the task becomes one micro-turn per agent.

    Only the agent whose micro-turn it is observes: its own observation and the outputs of those
    before it in this turn, in the order of `agents`. The task steps, and pays, after the last of
    them; earlier micro-turns pay 0. The horizon is n H micro-turns; where fewer than n agents act
    in some turn the episode ends sooner, after H turns of the task.

    The paper lets agents observe earlier agents' inputs as well; here they see outputs only,
    since a shared input would be repeated for each of them.
    """

    def __init__(self, inner: DecPOMDP[Item, State]) -> None:
        super().__init__(inner)
        self.horizon = inner.horizon * len(inner.agents)
        if inner.reward_range is not None:
            low, high = inner.reward_range
            self.reward_range = (min(low, 0.0), max(high, 0.0))

    def reset(self, item: Item, rng: np.random.Generator) -> PipelineState[State]:
        """The task's first state, nothing written yet."""
        return PipelineState(self.inner.reset(item, rng), 0)

    def observe(self, state: PipelineState[State], agent: str) -> str | None:
        """The task's observation and this turn's earlier outputs; None for all but one agent."""
        shown = self.inner.joint_observations(state.inner)
        if tuple(shown)[len(state.outputs) :][:1] != (agent,):
            return None
        return with_outputs(shown[agent], state.outputs, "in this turn")

    def step(
        self, state: PipelineState[State], actions: Mapping[str, str], rng: np.random.Generator
    ) -> Outcome[PipelineState[State]]:
        """Note the output; after the turn's last one, step the task with all of them."""
        outputs = (*state.outputs, *actions.items())
        if len(outputs) < len(self.inner.joint_observations(state.inner)):
            return Outcome(state=PipelineState(state.inner, state.turn, outputs), reward=0.0)
        outcome = self.inner.step(state.inner, dict(outputs), rng)
        turn = state.turn + 1
        return Outcome(
            state=PipelineState(outcome.state, turn),
            reward=outcome.reward,
            done=outcome.done or turn == self.inner.horizon,
            local_rewards=outcome.local_rewards,
        )
