"""Torch's CPU threads: one for small models, all cores for large ones, or the setting."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from tiny import save_model

from colearn.config import load_config, resolve
from colearn.models.load import Tokenizers
from colearn.models.torch_settings import use_threads
from colearn.training.hosts.local_team import local_team


@pytest.fixture(autouse=True)
def five_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(5)
    yield
    torch.set_num_threads(before)


def weights(*sizes: int) -> list[torch.nn.Module]:
    return [torch.nn.Linear(size, 1, bias=False, device="meta") for size in sizes]


@pytest.mark.parametrize(
    ("chosen", "sizes", "threads"),
    [
        (None, (1000, 4_000_000), 1),
        (None, (1000, 5_000_000), 5),
        (3, (1000,), 3),
        (3, (5_000_000,), 3),
    ],
)
def test_threads_follow_the_largest_model_unless_they_are_set(chosen, sizes, threads):
    assert use_threads(chosen, weights(*sizes)) == 5
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize(("given", "threads"), [("null", 1), ("2", 2)])
def test_a_run_sets_its_threads_and_restores_those_before(tmp_path, given, threads):
    settings = {
        "task": {"name": "str_build"},
        "algorithm": {"name": "magrpo"},
        "models": {"*": {"path": save_model(tmp_path / "model")}},
        "run": {"device": "cpu"},
    }
    team = local_team(resolve(load_config(settings, [f"run.threads={given}"])), Tokenizers())
    assert torch.get_num_threads() == threads
    team.close()
    assert torch.get_num_threads() == 5
