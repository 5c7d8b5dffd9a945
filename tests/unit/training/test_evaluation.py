"""Evaluation's settings, with agents that answer from their seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from tiny import Notes, byte_tokenizer

from colearn.config import EvaluationSettings
from colearn.contract import BatchEngine, Sampling, TokenAnswer, TokenRequest
from colearn.contract.types import Action
from colearn.methods.credit.shared_reward import SharedReward
from colearn.rollout.agents import AgentSpec, ChatFormat
from colearn.rollout.agents.cast.seats import Own
from colearn.text.notes import note_once
from colearn.training.evaluation.evaluate import Evaluation, evaluate_team
from colearn.training.evaluation.exact import temperatures
from colearn.training.processes import Processes
from tests.helpers.scripted_voice import language_players


class Seeded(BatchEngine):
    """Says a number drawn with the request's seed; notes how many requests came together."""

    def __init__(self) -> None:
        self.batches: list[int] = []

    def generate(self, requests: Sequence[TokenRequest]) -> Any:
        self.batches.append(len(requests))
        texts = [str(request.seeds[0] % 1000) for request in requests]
        return [[TokenAnswer(Action(text, tuple(text.encode())))] for text in texts]

    def sync(self) -> None: ...


def test_cold_values_are_at_temperature_0_2() -> None:
    """As `docs/reference` defines the metrics that end in `_cold`."""
    assert temperatures(AgentSpec(sampling=Sampling(temperature=0.7))) == [0.7, 0.2, 0.0]


def _evaluated(generator: Seeded, task: Notes | None = None, **settings: Any) -> Evaluation:
    voice = AgentSpec(chat=ChatFormat(byte_tokenizer()))
    task = task or Notes(horizon=2, items=3)
    return evaluate_team(
        task,
        language_players(generator, dict.fromkeys(task.agents, voice)),
        EvaluationSettings(**settings),
        seed=5,
        credit=SharedReward(),
        cast=Own(),
        processes=Processes(torch.device("cpu")),
    )


def _said(evaluation: Evaluation) -> list[list[str]]:
    return [[a.text for n in tree.nodes for a in n.actions.values()] for tree in evaluation.trees]


def test_episodes_played_one_by_one_are_those_played_together() -> None:
    together, alone = _evaluated(Seeded(), repeats=2), _evaluated(Seeded(), repeats=2, at_once=1)
    assert _said(alone) == _said(together)
    assert [tree.episode for tree in alone.trees] == list(range(len(together.trees)))


def test_at_once_bounds_the_episodes_in_a_call() -> None:
    generator = Seeded()
    _evaluated(generator, repeats=2, at_once=4)
    items = len(Notes(horizon=2, items=3).items("test"))
    # two agents in each episode, two turns in each batch of episodes
    sizes = [min(4, 2 * items - first) for first in range(0, 2 * items, 4)]
    assert generator.batches == [2 * size for size in sizes for _ in range(2)]


class Halves(Notes):
    """Trains on some clues and is evaluated on others."""

    def items(self, split: str) -> Sequence[tuple[str, ...]]:
        return self.clues[:2] if split == "train" else self.clues[2:]


def test_the_share_of_answers_that_were_cut_at_their_token_limit() -> None:
    class Cut(Seeded):
        def generate(self, requests: Sequence[TokenRequest]) -> Any:
            first, *rest = super().generate(requests)
            return [
                [replace(one, action=replace(one.action, finish="length")) for one in first],
                *rest,
            ]

    assert _evaluated(Seeded()).metrics["cut_answers"] == 0.0
    # three episodes side by side, two agents: one of six requests of a turn is cut
    assert _evaluated(Cut()).metrics["cut_answers"] == 1 / 6


def test_evaluation_plays_the_split_it_is_told_and_the_test_items_unless_told() -> None:
    task = Halves(horizon=2, items=5)
    assert [tree.item for tree in _evaluated(Seeded(), task).trees] == list(task.clues[2:])
    evaluation = _evaluated(Seeded(), task, split="train")
    assert [tree.item for tree in evaluation.trees] == list(task.clues[:2])


class AllCut(Seeded):
    """Every answer is cut at its limit, but for the last one if `but_one`."""

    def __init__(self, *, but_one: bool = False) -> None:
        super().__init__()
        self.but_one = but_one

    def generate(self, requests: Sequence[TokenRequest]) -> Any:
        answers = super().generate(requests)
        spared = answers.pop() if self.but_one else None
        cut = [[replace(one, action=replace(one.action, finish="length"))] for [one] in answers]
        return cut if spared is None else [*cut, spared]


ONE_EPISODE = "note: evaluation: one episode says little; raise evaluation.episodes"
ONE_ROW = "note: evaluation: the split 'test' has one row, which says little; hold out more rows"
CUT = "note: evaluation: every answer was cut at its token limit; raise agents.*.sampling.max_tok"


@pytest.mark.parametrize(
    ("generator", "task", "settings", "said"),
    [
        (Seeded(), Halves(horizon=2, items=3), {}, ONE_EPISODE),
        (Seeded(), Halves(horizon=2, items=3), {"repeats": 4}, ONE_ROW),
        (Seeded(), Halves(horizon=2, items=4), {"episodes": 1}, ONE_EPISODE),
        (AllCut(), Halves(horizon=2, items=4), {}, CUT),
        (Seeded(), Halves(horizon=2, items=4), {}, None),
        (AllCut(but_one=True), Halves(horizon=2, items=4), {}, None),
        (Seeded(), Notes(horizon=2, items=1), {"repeats": 2}, None),  # a game has one item
    ],
)
def test_an_evaluation_that_says_little_is_noted_once(
    generator: Seeded, task: Notes, settings: Any, said: str | None, capsys: Any
) -> None:
    note_once.cache_clear()
    _evaluated(generator, task, **settings)
    _evaluated(generator, task, **settings)
    lines = capsys.readouterr().err.splitlines()
    assert [line[: len(said)] for line in lines] == [said] if said else lines == []
