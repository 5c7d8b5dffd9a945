"""Base class of tasks in which a team answers one prompt and the answers are scored."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from colearn.contract import DecPOMDP, SampledAction
from colearn.contract.types import Observation, Outcome
from colearn.errors import ConfigError

from .prompt import AskedPrompt
from .team import seats


class HasPrompt(Protocol):
    """An item with a prompt."""

    @property
    def prompt(self) -> AskedPrompt:
        """The prompt that the team answers."""
        ...


Item = TypeVar("Item", bound=HasPrompt)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentAnswer:
    """One agent's answer and its token ids, which are empty if the agent is a program or a
    server."""

    text: str
    """The answer without its reasoning, as other agents read it."""
    completion: str
    """The whole text, as reward functions read it."""
    ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRewards:
    """The team's reward, rewards of single agents, and metrics; a reward of None means that the
    answer is not scored."""

    reward: float | None
    local: Mapping[str, float | None] = field(default_factory=dict)
    metrics: Mapping[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweringState(Generic[Item]):
    """The answers so far and, at the end, the metrics."""

    item: Item
    stage: int = 0
    answers: Mapping[str, AgentAnswer] = field(default_factory=dict)
    metrics: Mapping[str, float | None] = field(default_factory=dict)


class Answering(DecPOMDP[Item, AnsweringState[Item]], Generic[Item]):
    """A task for one agent or a team of `Seats`; the answer of the agent `self.answer` is the
    completion."""

    measures: tuple[str, ...]
    """Names of the metrics."""

    def __init__(
        self,
        agents: dict[str, str] | tuple[str, ...],
        answer: str | None,
        words: dict[str, tuple[str, ...]] | tuple[str, ...],
    ) -> None:
        self.seats = seats(agents)
        self.agents = tuple(self.seats.templates)
        self.horizon = len(self.seats.stages)
        self.answer = self._agent(answer or self.agents[-1], "task.answer")
        self.words = self._words(words)

    @abstractmethod
    def scores(self, item: Item, answers: Mapping[str, AgentAnswer]) -> AnswerRewards:
        """Scores of the team's answers to an item."""

    def reset(self, item: Item, rng: np.random.Generator) -> AnsweringState[Item]:
        """The state before any answer; nothing is random."""
        return AnsweringState(item=item)

    def observe(self, state: AnsweringState[Item], agent: str) -> Observation | None:
        """The agent's template, filled with the prompt and earlier answers."""
        if agent not in self.seats.acting(state.stage):
            return None
        prompt = state.item.prompt
        answers = {name: answer.text for name, answer in state.answers.items()}
        text = self.seats.text(agent, prompt.text, answers)
        return Observation(text, system=prompt.system, turns=prompt.turns)

    def step(
        self, state: AnsweringState[Item], actions: Mapping[str, str], rng: np.random.Generator
    ) -> Outcome[AnsweringState[Item]]:
        """Collects the stage's answers; after the last stage they are scored."""
        new_answers = {agent: _answer(actions[agent]) for agent in self.seats.acting(state.stage)}
        answers = {**state.answers, **new_answers}
        after = replace(state, stage=state.stage + 1, answers=answers)
        if self.seats.acting(after.stage):
            return Outcome(state=after, reward=0.0)
        scores = self.scores(state.item, answers)
        after = replace(after, metrics=scores.metrics)
        return Outcome(state=after, reward=scores.reward, done=True, local_rewards=scores.local)

    def metrics(self, state: AnsweringState[Item]) -> Mapping[str, float | None]:
        """The metrics from the scores; before the end none is measured."""
        unknown = None if self.seats.acting(state.stage) else 0.0
        return {name: state.metrics.get(name, unknown) for name in self.measures}

    def legal_action(
        self, state: AnsweringState[Item], agent: str, rng: np.random.Generator
    ) -> str | None:
        """Returns one of `words`; None if `words` is empty."""
        words: Sequence[str] = self.words.get(agent, ())
        return words[int(rng.integers(len(words)))] if words else None

    def _agent(self, name: str, field: str) -> str:
        if name not in self.agents:
            raise ConfigError(f"{field}: no agent '{name}'; there is {', '.join(self.agents)}")
        return name

    def _words(self, setting: Any) -> dict[str, tuple[str, ...]]:
        if not isinstance(setting, Mapping):
            return dict.fromkeys(self.agents, tuple(setting))
        return {self._agent(agent, "task.words"): words for agent, words in setting.items()}


def _answer(answer: str | SampledAction) -> AgentAnswer:
    sampled = SampledAction.of(answer)
    action = sampled.action
    return AgentAnswer(text=sampled.text, completion=action.text, ids=action.tokens)
