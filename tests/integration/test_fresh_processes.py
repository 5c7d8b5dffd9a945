"""`colearn check` plays a task in fresh processes and finds what differs between processes."""

from __future__ import annotations

import sys

import pytest

from colearn.entry.cli import main

TASK = """
import numpy as np
from colearn.contract import DecPOMDP
from colearn.contract.types import Outcome

WORDS = {"fig", "ash", "oak", "elm", "yew", "box"}


class Mine(DecPOMDP):
    agents, horizon = ("a", "b"), 1

    def items(self, split):
        return ["one", "two"]

    def reset(self, item, rng):
        return int(rng.integers(4))

    def observe(self, state, agent):
        return "guess"

    def step(self, state, actions, rng):
        return Outcome(state=state, reward=float(state), done=True)

    def metrics(self, state):
        return {}


class ShowsASet(Mine):
    def observe(self, state, agent):
        return " ".join(WORDS)


class PaysNoNumber(Mine):
    def legal_action(self, state, agent, rng):
        return "left"

    def step(self, state, actions, rng):
        paid = float("nan") if actions["a"] == "left" else 0.0
        return Outcome(state=state, reward=paid, done=True)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mine")
    (folder / "between_processes.py").write_text(TASK)
    return folder


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("Mine", None),
        ("ShowsASet", "task.observe: what 'a' sees at turn 0 of item"),
    ],
)
def test_what_differs_between_processes_is_one_line(folder, name, told, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["colearn", "check", f"between_processes:{name}"])
    with pytest.raises(SystemExit) as stop:
        main()
    out, err = capsys.readouterr()
    if told is None:
        assert stop.value.code == 0
        assert out.splitlines()[0] == "between_processes:Mine: holds the contract"
        return
    assert stop.value.code == 2
    [line] = [line for line in err.splitlines() if line.startswith("error: ")]
    assert line.startswith(f"error: {told}") and " differs between processes; let all " in line


def test_a_task_that_only_random_play_finds_broken_is_not_said_to_hold(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["colearn", "check", "between_processes:PaysNoNumber"])
    with pytest.raises(SystemExit) as stop:
        main()
    out, err = capsys.readouterr()
    assert stop.value.code == 2 and "reward is nan" in err
    assert "holds the contract" not in out
