"""Base class of the writing tasks: two agents write about one text in one turn.

The reward is computed from text statistics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from textwrap import shorten
from typing import ClassVar, Literal

import numpy as np

from colearn.contract import DecPOMDP, Headline
from colearn.contract.types import Outcome
from colearn.text.reasoning import without_reasoning

from ..checks import check_split
from ..turn_and_reward import turn_and_reward
from .data import TextSource, load_texts
from .reward import ScoreParts, ScoringRules, score
from .settings import check_settings
from .text import compact
from .words import CONNECTORS

CONNECTED = 0.1
"""Probability that a word of `legal_action` is a connector."""


@dataclass(frozen=True, slots=True)
class WritingItem:
    """The text that both agents read."""

    text: str

    def __str__(self) -> str:
        """The text's first words, by which reports name an episode."""
        return shorten(self.text, width=100, placeholder=" ...")


@dataclass(frozen=True, slots=True)
class WritingState:
    """The text and, after the turn, the scores of the answers."""

    item: WritingItem
    parts: ScoreParts | None = None


class WritingTask(DecPOMDP[WritingItem, WritingState]):
    """Two agents write about one text at the same time; `agents[0]` writes the first answer.

    Errors: ConfigError from the constructor, one line that names the setting; MissingExtra if
    `data: hub` is set without the extra `tasks`.
    """

    agents: tuple[str, str]
    horizon = 1
    headline = Headline("score")
    source: ClassVar[TextSource]
    variants: ClassVar[Mapping[str, ScoringRules]]
    prompts: ClassVar[Mapping[str, Mapping[str, str]]]
    """Prompt templates by variant and agent, with {text} for the text."""

    def __init__(
        self,
        *,
        variant: Literal["paper", "comlrl"] = "paper",
        data: str = "packaged",
        field: str | None = None,
        words: Sequence[int] | None = None,
        prompt: Literal["full", "compact"] = "full",
    ) -> None:
        choices = {"variant": variant, "prompt": prompt}
        check_settings(choices=choices, data=data, field=field, words=words)
        self.variant, self.prompt = variant, prompt
        self.rules = self.variants[variant]
        if words is not None:
            self.rules = replace(self.rules, words=(words[0], words[1]))
        self.reward_range = (0.0, self.rules.highest)
        self._items = {
            split: tuple(WritingItem(text) for text in texts)
            for split, texts in load_texts(self.source, data, field).items()
        }

    def items(self, split: str) -> Sequence[WritingItem]:
        """The texts of 'train' or 'test'."""
        check_split(split)
        return self._items[split]

    def reset(self, item: WritingItem, rng: np.random.Generator) -> WritingState:
        """The state before any answer; nothing is random."""
        return WritingState(item)

    def observe(self, state: WritingState, agent: str) -> str:
        """The text and the agent's instruction; both agents act."""
        if self.prompt == "compact":
            return f"{agent} {compact(state.item.text)}"
        before, after = self.prompts[self.variant][agent].split("{text}")
        return before + state.item.text + after

    def step(
        self, state: WritingState, actions: Mapping[str, str], rng: np.random.Generator
    ) -> Outcome[WritingState]:
        """Score the two answers and end the episode."""
        parts = score(self.rules, *(without_reasoning(actions[agent]) for agent in self.agents))
        return Outcome(state=WritingState(state.item, parts), reward=parts.total, done=True)

    def metrics(self, state: WritingState) -> Mapping[str, float | None]:
        """Returns `score`, the reward divided by its maximum, in [0, 1] (Table 1 gives percent),
        and `bounds`, `length`, `diversity`, `style` and `coherence`, which add up to the reward.
        None is measured before the texts are written."""
        parts = ScoreParts() if state.parts is None else state.parts
        measured = {"score": parts.total / self.rules.highest, **asdict(parts)}
        return dict.fromkeys(measured) if state.parts is None else measured

    def global_info(self, state: WritingState) -> str:
        """m_t in the paper's words (E.3). It is the same for all texts, since there is only one
        turn."""
        reward = 0.0 if state.parts is None else state.parts.total
        return turn_and_reward(0, 1, reward, self.rules.highest)

    def legal_action(self, state: WritingState, agent: str, rng: np.random.Generator) -> str:
        """Returns an uncoordinated action: a random number of consecutive words of the text, within
        the bounds. The words begin at a random position and wrap around at the end of the text; one
        word in ten is replaced by a connector."""
        text = state.item.text
        words = (compact(text) if self.prompt == "compact" else text).split()
        least, most = self.rules.words
        count = int(rng.integers(least, min(most, max(2 * least, len(words))) + 1))
        start = int(rng.integers(len(words)))
        stretch = [words[(start + offset) % len(words)] for offset in range(count)]
        connected = rng.random(count) < CONNECTED
        chosen = rng.integers(len(CONNECTORS), size=count)
        return " ".join(
            CONNECTORS[chosen[place]] if connected[place] else word
            for place, word in enumerate(stretch)
        )
