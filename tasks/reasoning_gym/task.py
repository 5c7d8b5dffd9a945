"""reasoning-gym's data sets as text: procedural questions, scored by the package."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from colearn.contract.held_out import separate
from colearn.contract.seeding import derive_seed
from colearn.errors import ConfigError

from ..checks import check_split, check_whole
from ..dataset.answering import AgentAnswer, Answering, AnsweringState, AnswerRewards
from ..dataset.prompt import AskedPrompt
from .scorer import Source, entries
from .scorer import score as scored
from .source import data_set

ASKED = "\n\nWrite the final answer, and nothing else, between <answer> and </answer>."
_TAGGED = re.compile(r"<answer>(.*?)</answer>", re.S)


@dataclass(frozen=True, slots=True, kw_only=True)
class GymItem:
    """An entry of the data set, identified by its index."""

    number: int
    prompt: AskedPrompt

    def __str__(self) -> str:
        return f"entry {self.number}"


class ReasoningGym(Answering[GymItem]):
    """One agent or a team answers the questions of one of reasoning-gym's data sets.

    data: name of the data set, such as `chain_sum`.
    settings: settings of the data set.
    size, test_size: number of entries in each split; the splits share no question.
    seed: seed of the entries.
    tagged: whether the prompt asks for `<answer>...</answer>` and the answer is read from there.
    False: the whole text is the answer.
    agents, answer: as for `dataset`.
    words: answers on which the embedded model is warm-started; by default the answers of training
    entries.

    The reward is the package's `score_answer`, in [0, 1]. Nearly all data sets give 0.01 or 0 for a
    wrong answer. A separate process scores the answers. An answer at which the package raises an
    exception, or works for more than 4 s, earns 0. Some data sets evaluate answers as Python; here
    they evaluate literals and expressions of sympy alone.

    Metrics: `score`, and `solved`, which is 1 if the score is 1 and else 0.

    Errors: ConfigError from the constructor; MissingExtra without reasoning-gym.
    """

    measures = ("score", "solved")
    reward_range = (0.0, 1.0)

    def __init__(
        self,
        data: str,
        *,
        settings: dict[str, Any] | None = None,
        size: int = 512,
        test_size: int = 64,
        seed: int = 0,
        tagged: bool = True,
        agents: dict[str, str] | tuple[str, ...] = ("agent",),
        answer: str | None = None,
        words: dict[str, tuple[str, ...]] | tuple[str, ...] = (),
    ) -> None:
        super().__init__(agents, answer, words)
        check_whole("size", size, 1)
        check_whole("test_size", test_size, 1)
        self.source: Source = (
            data,
            json.dumps(settings or {}, sort_keys=True),
            size + test_size,
            derive_seed(seed, "reasoning_gym") % 2**31,
        )
        self.tagged, self.test_size = tagged, test_size
        data_set(*self.source)
        self._items: dict[str, Sequence[GymItem]] = {}

    def items(self, split: str) -> Sequence[GymItem]:
        """The entries of 'train' or 'test'. Questions of the test split are removed from 'train'.

        Errors: ConfigError if no question is left to train on.
        """
        check_split(split)
        if not self._items:
            all_items = [self._item(number) for number in range(self.source[2])]
            train, test = all_items[: -self.test_size], all_items[-self.test_size :]
            source = f"task.data: {self.source[0]}"
            self._items |= separate(train, test, lambda item: item.prompt.text, source=source)
        if not self._items["train"]:
            raise ConfigError("task.size: every question is tested; set test_size lower")
        return self._items[split]

    def scores(self, item: GymItem, answers: Mapping[str, AgentAnswer]) -> AnswerRewards:
        """The package's score of the completion; 0 if an answer must be tagged and none is."""
        text = answers[self.answer].text
        if self.tagged:
            tagged = _TAGGED.findall(text)
            text = tagged[-1] if tagged else ""
        score = scored(self.source, item.number, text.strip() or None)
        return AnswerRewards(reward=score, metrics={"score": score, "solved": float(score == 1.0)})

    def privileged_info(self, state: AnsweringState[GymItem]) -> str:
        """The entry's answer."""
        return str(entries(self.source)[state.item.number]["answer"])

    def legal_action(
        self, state: AnsweringState[GymItem], agent: str, rng: np.random.Generator
    ) -> str | None:
        """One of `words`, or the answer of any training entry, in the requested format."""
        action = super().legal_action(state, agent, rng)
        if action is not None:
            return action
        train = self.items("train")
        number = train[int(rng.integers(len(train)))].number
        answer = str(entries(self.source)[number]["answer"])
        return f"<answer>{answer}</answer>" if self.tagged else answer

    def _item(self, number: int) -> GymItem:
        question = str(entries(self.source)[number]["question"]).strip()
        text = question + ASKED if self.tagged else question
        return GymItem(number=number, prompt=AskedPrompt(text=text))
