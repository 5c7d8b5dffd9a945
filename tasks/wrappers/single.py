"""Single: one agent replaces the team and writes all agents' parts in one answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np

from colearn.contract import (
    DecPOMDP,
    joint_observations,
    text_of,
)
from colearn.contract.types import Observation, Outcome
from colearn.errors import ConfigError

from .wrapper import Wrapper

Item = TypeVar("Item")
State = TypeVar("State")

SOLO = "solo"
_TASK = "Write {count} parts, each under a line of its own that names it: {names}."


@dataclass(frozen=True, slots=True)
class SingleState(Generic[State]):
    """The task's state."""

    inner: State


class Single(Wrapper[Item, State, SingleState[State]]):
    """The paper's single model (section 6.2) for tasks with fixed roles. The agent `solo` sees the
    observations of all agents of the team and answers for all of them. In the answer, each agent's
    part follows a line with the agent's name, such as

        ### summary

    Text before the first of these lines belongs to the first part; a part without its line is
    empty. The task that `alone()` returns computes the reward; as in the paper, this reward has no
    terms for cooperation. If a task is configured for one agent, the wrapper does not change it.

    The paper does not say how its single models were prompted.
    """

    def __init__(self, inner: DecPOMDP[Item, State]) -> None:
        super().__init__(inner if len(inner.agents) == 1 else inner.alone() or inner)
        if len(inner.agents) > 1:
            self.agents = (SOLO,)
            if "team" not in self.pays:
                raise ConfigError(
                    "wrapper: single plays for the team, and this task pays players one by one; "
                    "leave it out"
                )
            self.pays = frozenset({"team"})
            self.pays_later = False

    def reset(self, item: Item, rng: np.random.Generator) -> SingleState[State]:
        """The task's first state."""
        return SingleState(self.inner.reset(item, rng))

    def observe(self, state: SingleState[State], agent: str) -> Observation | None:
        """Returns all observations of the turn, each under its agent's name; None if no agent
        acts."""
        observations = joint_observations(self.inner, state.inner)
        if len(self.inner.agents) == 1 or not observations:
            return observations.get(agent)
        sections = [f"{_line(name)}\n{prompt.whole}" for name, prompt in observations.items()]
        names = ", ".join(_line(name) for name in observations)
        text = "\n\n".join([*sections, _TASK.format(count=len(observations), names=names)])
        return Observation(text, fresh=any(prompt.fresh for prompt in observations.values()))

    def send(self, state: SingleState[State], actions: Mapping[str, Any]) -> SingleState[State]:
        """Forwarded to the task for a team of one; for a larger team, `step` divides the answer."""
        if len(self.inner.agents) > 1:
            return state
        return replace(state, inner=self.inner.send(state.inner, actions))

    def step(
        self, state: SingleState[State], actions: Mapping[str, str], rng: np.random.Generator
    ) -> Outcome[SingleState[State]]:
        """The task's step with the parts of the answer."""
        alone = len(self.inner.agents) == 1
        if not alone:
            names = tuple(joint_observations(self.inner, state.inner))
            actions = split_parts(text_of(actions[SOLO]), names)
        outcome = self.inner.step(state.inner, actions, rng)
        return Outcome(
            state=SingleState(outcome.state),
            reward=outcome.reward,
            done=outcome.done,
            truncated=outcome.truncated,
            local_rewards=outcome.local_rewards if alone else {},
            earned=outcome.earned if alone else {},
        )

    def legal_action(
        self, state: SingleState[State], agent: str, rng: np.random.Generator
    ) -> str | None:
        """A legal action for every part, each under the part's line."""
        if len(self.inner.agents) == 1:
            return super().legal_action(state, agent, rng)
        parts = []
        for name in joint_observations(self.inner, state.inner):
            action = self.inner.legal_action(state.inner, name, rng)
            if action is None:
                return None
            parts.append(f"{_line(name)}\n{action}")
        return "\n".join(parts)


def split_parts(answer: str, names: Sequence[str]) -> dict[str, str]:
    """Returns the text of each agent's part; if a name repeats, the last part counts."""
    lines: dict[str, list[str]] = {name: [] for name in names}
    heads = {_line(name): name for name in names}
    current = names[0]
    for line in answer.split("\n"):
        if line.strip() in heads:
            current = heads[line.strip()]
            lines[current] = []
        else:
            lines[current].append(line)
    return {name: "\n".join(part_lines).strip() for name, part_lines in lines.items()}


def _line(name: str) -> str:
    return f"### {name}"
