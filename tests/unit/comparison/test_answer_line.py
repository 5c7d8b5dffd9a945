"""The answer that training prints at each evaluation."""

from __future__ import annotations

import json
from pathlib import Path

from fabricated_runs import write_jsonl

from colearn.entry.python.run_progress import answer_line
from colearn.runs.record import Episode
from colearn.runs.record.tail import EpisodesTail


def episode(*answers: str, value: float | None = 0.5) -> Episode:
    turns = [{"actions": {"ada": "", "bob": answer}} for answer in answers]
    return Episode.model_validate({"iteration": 4, "item": "T", "return": value, "turns": turns})


def test_the_first_answer_that_is_not_empty_is_one_printable_short_line() -> None:
    assert answer_line(episode(" \n", "go\n\x1b[2J left")) == (
        "iteration 4, return 0.500, item T; bob answers: go \ufffd[2J left"
    )
    long = answer_line(episode("x" * 5000, value=None))
    assert long == f"iteration 4, item T; bob answers: {'x' * 100} ..."


def test_empty_answers_are_told() -> None:
    assert answer_line(episode("", "\n")).endswith("item T; all answers are empty")


def test_the_first_new_episode_of_the_iteration_is_found_among_other_lines(tmp_path: Path) -> None:
    """A callback may write lines of its own, and JSON holds half a character that UTF-8 has not."""
    file = tmp_path / "episodes.jsonl"
    write_jsonl(file, [{"iteration": 4, "item": "earlier"}])
    tail = EpisodesTail(file)
    assert tail.first(4) is None
    others = ['{"iteration": 4, "note": "mine"}', "4]}", "[1]", '{"iteration": 2, "item": "old"}']
    new = [json.dumps({"iteration": 4, "item": "half \ud800"}), '{"iteration": 4, "item": "next"}']
    with file.open("a") as out:
        out.write("\n".join([*others, *new]) + "\n")
    first = tail.first(4)
    assert first is not None and first.item == "half \ud800"
    assert answer_line(first) == "iteration 4, item half \ufffd; all answers are empty"
    assert tail.first(4) is None
