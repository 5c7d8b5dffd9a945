"""A user's program as a player: an exception or an answer that is no text is one line."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from colearn.contract import View
from colearn.errors import TaskError
from colearn.methods.credit.shared_reward import SharedReward
from colearn.rollout.agents import Program
from colearn.rollout.grow import grow
from colearn.rollout.shapes import Chain
from colearn.tasks.dpomdp import TextDecPOMDP


class Bot:
    """Answers with the result of a function."""

    def __init__(self, answer: Callable[[], Any]) -> None:
        self.answer = answer

    def act(self, view: View) -> str:
        return self.answer()  # type: ignore[no-any-return]


def play(answer: Callable[[], Any]) -> None:
    task = TextDecPOMDP()
    with closing(Program(Bot(answer))) as player:
        players = dict.fromkeys(task.agents, player)
        grow(task, task.items("train")[:1], players, Chain(), seed=0, credit=SharedReward())


def raises() -> str:
    raise LookupError("no such card")


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (raises, r"Bot\.act raised LookupError: no such card \(.*test_own_programs\.py"),
        (lambda: sys.exit(3), r"Bot\.act raised SystemExit: "),
        (lambda: None, r"Bot\.act: gave a NoneType, must be str"),
        (lambda: 3, r"Bot\.act: gave a int, must be str"),
        (lambda: b"left", r"Bot\.act: gave a bytes, must be str"),
        (lambda: "\ud800", r"Bot\.act: gave half of a surrogate pair"),
    ],
)
def test_a_program_that_fails_is_one_line_that_names_it(
    answer: Callable[[], Any], told: str
) -> None:
    with pytest.raises(TaskError, match=rf"^program of agent '\w+': {told}"):
        play(answer)


def test_a_program_leaves_no_switch_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    def moves() -> str:
        os.chdir("/")
        return "listen"

    play(moves)
    assert Path.cwd() == tmp_path
    assert "Bot.act changed the current folder" in capsys.readouterr().err
