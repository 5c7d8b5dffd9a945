"""Pipeline: within a turn agents act one after another and see the outputs of earlier agents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np

from colearn.contract import DecPOMDP, joint_observations, text_of
from colearn.contract.scored import as_number, as_reward, sum_scored
from colearn.contract.types import Observation, Outcome

from .quote import with_outputs
from .wrapper import Wrapper

Item = TypeVar("Item")
State = TypeVar("State")


@dataclass(frozen=True, slots=True)
class PipelineState(Generic[State]):
    """The task's state and this turn's outputs so far, by agent."""

    inner: State
    turn: int
    """Number of complete turns of the task."""
    outputs: tuple[tuple[str, Any], ...] = ()
    """(agent, output) pairs, as `step` received them."""
    places: tuple[tuple[int, str], ...] = ()
    """The (turn of the task, agent) of every micro-turn so far."""


class Pipeline(Wrapper[Item, State, PipelineState[State]]):
    """One-way communication (section 6.2): each turn of the task becomes one micro-turn per agent.

    In each micro-turn, one agent receives the task's observation for this agent, followed by the
    outputs of the agents that acted earlier in this turn. Agents act in the order of `agents`. The
    task steps and pays its rewards after the turn's last micro-turn; earlier micro-turns pay 0. The
    horizon is n H micro-turns for n agents and H turns of the task. If fewer than n agents act in
    some turn, the episode ends sooner, after H turns of the task. Each micro-turn is a turn of the
    algorithm: a turn of the task that a truncated episode misses counts `missing_turn_reward` n
    times, so divide that reward by n.

    In the paper, agents also observe the inputs of earlier agents. With this wrapper, agents see
    only outputs, since a shared input would be repeated for each agent.
    """

    def __init__(self, inner: DecPOMDP[Item, State]) -> None:
        super().__init__(inner)
        self.horizon = inner.horizon * len(inner.agents)
        self.pays_later = "local" in self.pays
        if self.reward_range is not None:
            low, high = self.reward_range
            self.reward_range = (min(low, 0.0), max(high, 0.0))

    def reset(self, item: Item, rng: np.random.Generator) -> PipelineState[State]:
        """The task's first state, without outputs."""
        return PipelineState(self.inner.reset(item, rng), 0)

    def observe(self, state: PipelineState[State], agent: str) -> Observation | None:
        """Returns the task's observation and this turn's earlier outputs for the acting agent, and
        None for all other agents."""
        observations = joint_observations(self.inner, state.inner)
        if tuple(observations)[len(state.outputs) :][:1] != (agent,):
            return None
        prompt, places = observations[agent], state.places
        if prompt.made_from is not None:  # by turns of the task
            sources = tuple((places.index(place), place[1]) for place in prompt.made_from)
            prompt = replace(prompt, made_from=sources)
        first = len(places) - len(state.outputs)
        outputs = {
            (n, speaker): text_of(output)
            for n, (speaker, output) in enumerate(state.outputs, first)
        }
        return with_outputs(prompt, outputs, "in this turn")

    def step(
        self, state: PipelineState[State], actions: Mapping[str, str], rng: np.random.Generator
    ) -> Outcome[PipelineState[State]]:
        """Store the output; after the turn's last output, step the task with all of them."""
        outputs = (*state.outputs, *actions.items())
        places = (*state.places, *((state.turn, agent) for agent in actions))
        if len(outputs) < len(joint_observations(self.inner, state.inner)):
            waiting = PipelineState(state.inner, state.turn, outputs, places)
            return Outcome(state=waiting, reward=0.0)
        outcome = self.inner.step(state.inner, dict(outputs), rng)
        others, earned = _moved(outcome, places)
        turn = state.turn + 1
        return Outcome(
            state=PipelineState(outcome.state, turn, places=places),
            reward=outcome.reward,
            done=outcome.done or turn == self.inner.horizon,
            truncated=outcome.truncated,
            local_rewards=others,
            earned=earned,
        )


def _moved(
    outcome: Outcome[Any], places: Sequence[tuple[int, str]]
) -> tuple[dict[str, float | None], dict[tuple[int, str], float | None]]:
    """Returns two mappings: the local rewards of agents that did not act in the task's turn, by
    agent; and all other local rewards, including delayed ones, by the micro-turn of the rewarded
    action."""
    last = places[-1][0]
    rewards = dict(outcome.earned)
    others: dict[str, float | None] = {}
    for agent, reward in outcome.local_rewards.items():
        if (last, agent) in places:
            paid = [rewards[last, agent]] if (last, agent) in rewards else []
            rewards[last, agent] = as_reward(sum_scored(map(as_number, (*paid, reward))))
        else:
            others[agent] = reward
    return others, {(places.index(place), place[1]): reward for place, reward in rewards.items()}
