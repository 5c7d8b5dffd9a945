"""Following a run's metrics and notes while it writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from colearn.runs.record.tail import MetricsTail, NotesTail, Status
from colearn.text.notes import note


def line(kind: str, steps: int, **fields: Any) -> str:
    costs = {"iteration": 1, "generated_tokens": 0, "updates": 0, "wall_seconds": 0.0}
    whole = {"kind": kind, "environment_steps": steps, "metrics": {}, **costs, **fields}
    return json.dumps(whole) + "\n"


def test_a_tail_reads_whole_lines_once_and_notices_a_shorter_file(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    tail = MetricsTail(path)
    assert not tail.advance()
    path.write_text(line("evaluation", 8, metrics={"return": 0.5}) + '{"kind": "upd')
    assert tail.advance()
    assert (tail.status.environment_steps, tail.status.evaluation) == (8, 0.5)
    assert not tail.advance()
    path.write_text(line("update", 4))
    assert tail.advance()
    assert (tail.status.environment_steps, tail.status.evaluation) == (4, None)


@pytest.mark.parametrize(
    "damaged",
    [
        "7",
        "[" * 100_000,
        '{"kind": "update"}',
        line("update", 4, metrics=7).strip(),
        line("update", 4, wall_seconds="long").strip(),
        line("update", 4, environment_steps=None).strip(),
    ],
    ids=["number", "deep", "short", "metrics", "seconds", "steps"],
)
def test_a_damaged_line_is_passed_over(damaged: str, tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text(f"{damaged}\n{line('update', 8, metrics={'return': 0.5})}")
    tail = MetricsTail(path)
    assert tail.advance()
    assert (tail.status.environment_steps, tail.status.training_return) == (8, 0.5)


def test_the_headline_metric_is_the_one_that_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text(line("evaluation", 8, metrics={"return": 0.5, "solved": 0.25}))
    tail = MetricsTail(path, "solved")
    tail.advance()
    assert tail.status.evaluation == 0.25


def followed(path: Path, *lines: str) -> Status:
    path.write_text("".join(lines))
    tail = MetricsTail(path)
    tail.advance()
    return tail.status


def update(steps: int, tokens: int, seconds: float, value: float | None) -> str:
    costs = {"generated_tokens": tokens, "wall_seconds": seconds}
    return line("update", steps, metrics={"return": value}, **costs)


def test_the_training_return_is_a_mean_over_updates_not_the_evaluation(tmp_path: Path) -> None:
    status = followed(
        tmp_path / "metrics.jsonl",
        line("evaluation", 0, metrics={"return": 9.0}),
        update(8, 100, 1.0, 1.0),
        update(16, 200, 2.0, 2.0),
    )
    assert (status.training_return, status.evaluation) == (1.5, 9.0)


def test_only_the_latest_twenty_updates_count(tmp_path: Path) -> None:
    # the first five cost 1 s for 10 tokens, later ones 1 s for 100
    tokens = (10 * min(number + 1, 5) + 100 * max(0, number - 4) for number in range(25))
    updates = (update(n, made, n + 1.0, float(n)) for n, made in enumerate(tokens))
    status = followed(tmp_path / "metrics.jsonl", *updates)
    assert status.training_return == sum(range(5, 25)) / 20
    assert status.tokens_per_second == 100.0


def test_an_update_without_a_finite_return_leaves_the_mean(tmp_path: Path) -> None:
    status = followed(
        tmp_path / "metrics.jsonl", update(8, 100, 2.0, 1.0), update(16, 200, 4.0, None)
    )
    assert status.training_return == 1.0
    assert status.tokens_per_second == 50.0


def test_notes_of_a_log_are_read_once_and_nothing_else_is(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_text("note: of an earlier process\n")
    notes = NotesTail(log, start=log.stat().st_size)
    with log.open("a") as file:
        file.write("note: makes a model\nwarning: other\nnote: hal")
    assert notes.advance() == ["makes a model"]
    assert notes.advance() == []


@pytest.mark.parametrize(("rank", "said"), [(None, True), ("0", True), ("1", False)])
def test_rank_0_alone_prints_notes(
    rank: str | None,
    said: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("RANK", raising=False)
    if rank is not None:
        monkeypatch.setenv("RANK", rank)
    note("makes a model")
    assert capsys.readouterr().err == ("note: makes a model\n" if said else "")
