"""A run goes on with every line that was whole; what is gone or cannot be read is said first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import colearn
from colearn.config import Config
from colearn.errors import CheckpointError
from colearn.runs.record import Progress, RunWriter

CONFIG = Config.model_validate(
    {
        "task": {"name": "str_build"},
        "algorithm": {"name": "magrpo"},
        "models": {"*": {"path": "embedded-tiny"}},
        "run": {"device": "cpu"},
    }
)
AT_2 = Progress(iteration=2, environment_steps=8, updates=2, evaluated=2)
COST = {"environment_steps": 4, "generated_tokens": 0, "updates": 0, "wall_seconds": 0.5}
RECORD: dict[str, Any] = {
    "status": "finished",
    "algorithm": "magrpo",
    "task": "str_build",
    "seed": 0,
    "agents": ["a"],
    "models": {},
    "parameters": {},
    "version": colearn.__version__,
    "started": "",
    "wall_seconds": 1.0,
    "peak_memory_bytes": 0,
    "iterations": 3,
    "rollouts": 3,
    "environment_steps": 12,
    "joint_actions": 12,
    "generated_tokens": 0,
    "updates": 3,
    "first": {},
    "last": {},
}


def line(kind: str, iteration: int) -> str:
    return json.dumps({"kind": kind, "iteration": iteration, **COST, "metrics": {"x": 0.1}})


def episode(iteration: int, item: str = "ä\u2028") -> str:
    return json.dumps({"iteration": iteration, "item": item, "turns": []})


METRICS = [
    line("evaluation", 0),
    line("update", 1),
    line("update", 2),
    line("evaluation", 2),
    line("update", 3),
]
EPISODES = [episode(0), episode(2), episode(4)]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    writer = RunWriter(folder, CONFIG, resume=False)
    writer.open()
    writer.close()
    write(folder / "metrics.jsonl", METRICS)
    write(folder / "episodes.jsonl", EPISODES)
    return folder


def write(path: Path, lines: list[str]) -> None:
    path.write_text("".join(f"{one}\n" for one in lines))


def rewind(folder: Path, progress: Progress | None = AT_2) -> None:
    writer = RunWriter(folder, CONFIG, resume=True)
    try:
        writer.rewind(progress)
    finally:
        writer.close()


def complaint(folder: Path, progress: Progress | None = AT_2) -> str:
    """The line, once it is sure that nothing was touched."""
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    with pytest.raises(CheckpointError) as caught:
        rewind(folder, progress)
    after = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    assert {p: d for p, d in after.items() if "lock" not in p.name} == {
        p: d for p, d in before.items() if "lock" not in p.name
    }
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_lines_after_the_state_go_and_all_others_stay_as_they_were(run, capsys):
    rewind(run)
    assert (run / "metrics.jsonl").read_text().splitlines() == METRICS[:4]
    assert (run / "episodes.jsonl").read_text().split("\n") == [*EPISODES[:2], ""]
    assert capsys.readouterr().err == ""


def test_a_line_cut_short_goes_and_one_that_only_lacks_its_end_stays(run):
    with (run / "metrics.jsonl").open("w") as file:
        file.write("\n".join(METRICS[:4]))
    with (run / "episodes.jsonl").open("a") as file:
        file.write(EPISODES[0][:20])
    rewind(run)
    assert (run / "metrics.jsonl").read_text() == "\n".join([*METRICS[:4], ""])
    assert (run / "episodes.jsonl").read_text() == "\n".join([*EPISODES[:2], ""])


@pytest.mark.parametrize(
    ("garbage", "wrong"),
    [
        (b"\xff\xfe\x00garbage", "not text in UTF-8"),
        (b"{", "not JSON ("),
        (b"[" * 100_000, "not JSON ("),
        (b"7", "must hold a JSON object"),
        (b"{}", "lacks 'iteration'"),
    ],
    ids=["bytes", "cut", "deep", "number", "empty"],
)
def test_garbage_among_the_episodes_is_told_with_its_line(run, garbage, wrong):
    path = run / "episodes.jsonl"
    path.write_bytes(garbage + b"\n" + path.read_bytes())
    assert complaint(run).startswith(f"{path}:1: {wrong}")


def test_garbage_among_the_metrics_is_told_with_its_line(run):
    path = run / "metrics.jsonl"
    path.write_bytes(b"\xff\n" + path.read_bytes())
    assert complaint(run).startswith(f"{path}:1: not text in UTF-8; delete the line")


def test_figures_that_are_gone_are_told_of(run):
    (run / "metrics.jsonl").unlink()
    assert complaint(run) == (
        f"{run / 'metrics.jsonl'}: missing, and the run's figures are in it; put it back, or make "
        "an empty file to go on without them"
    )


def test_a_run_goes_on_without_figures_where_it_is_told_to(run, capsys):
    (run / "metrics.jsonl").write_text("")
    rewind(run)
    assert capsys.readouterr().err == (
        f"note: {run / 'metrics.jsonl'} lacks 2 of 2 updates, first that of iteration 1\n"
        f"note: {run / 'metrics.jsonl'} lacks the evaluation of iteration 2\n"
    )


def test_transcripts_that_are_gone_are_said(run, capsys):
    (run / "episodes.jsonl").unlink()
    rewind(run)
    told = f"note: {run / 'episodes.jsonl'} is missing; the transcripts in it are lost\n"
    assert capsys.readouterr().err == told


def test_a_run_that_reached_no_checkpoint_starts_anew_and_says_so(run, capsys):
    rewind(run, None)
    assert (run / "metrics.jsonl").read_text() == ""
    told = f"note: {run}: no checkpoint was reached; the run starts again without its lines\n"
    assert capsys.readouterr().err == told


def test_a_finished_run_whose_checkpoints_are_gone_is_not_begun_anew(run):
    (run / "run.json").write_text(json.dumps(RECORD))
    assert complaint(run, None) == (
        f"{run / 'checkpoints'}: no checkpoint is left of a run that is finished; put one back, or "
        "name another folder"
    )


def test_a_run_whose_config_is_gone_is_not_written_over(run):
    (run / "config.yaml").unlink()
    for resume in (True, False):
        with pytest.raises(CheckpointError) as caught:
            RunWriter(run, CONFIG, resume=resume)
        assert str(caught.value) == (
            f"--out {run}: holds metrics.jsonl, episodes.jsonl of a run and no config.yaml; put it "
            "back, or name another folder"
        )
