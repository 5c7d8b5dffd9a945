"""Models that decode at the same time on a CPU: who does, and that the answers stay the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from tiny import Notes, cast

from colearn.engines.transformers import share_cores
from colearn.rollout.grow import grow
from colearn.rollout.shapes import KaryTree


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def separate():
    team = cast(shared=False)
    return team, list(team.generators.values())


def test_small_models_take_turns(two_threads):
    _, generators = separate()
    share_cores(generators)
    assert [one.place for one in generators] == ["cpu", "cpu"]


def test_large_models_have_a_thread_each(two_threads, monkeypatch):
    monkeypatch.setattr("colearn.engines.transformers.LARGE", 1)
    _, generators = separate()
    share_cores(generators)
    assert [one.threads for one in generators] == [(1, 2), (1, 2)]
    assert len({one.place for one in generators}) == 2


def test_on_one_thread_models_take_turns(monkeypatch):
    monkeypatch.setattr("colearn.engines.transformers.LARGE", 1)
    _, generators = separate()
    share_cores(generators)
    assert [one.place for one in generators] == ["cpu", "cpu"]


def test_shared_cores_change_no_token_and_leave_torchs_threads(two_threads, monkeypatch):
    monkeypatch.setattr("colearn.engines.transformers.LARGE", 1)

    def said(team):
        trees, _ = grow(Notes(), Notes().items("train"), team.players, KaryTree(2), seed=0)
        return [
            {agent: action.tokens for agent, action in node.actions.items()}
            for tree in trees
            for node in tree.nodes
        ]

    team, generators = separate()
    in_turns = said(team)
    share_cores(generators)
    assert said(team) == in_turns
    assert torch.get_num_threads() == 2
