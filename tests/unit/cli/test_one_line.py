"""Odd keys and names in a config leave an error one short line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from colearn.entry.cli import main
from colearn.runs.record.writer import resume_command


@pytest.mark.parametrize(
    ("pair", "told"),
    [
        ("run.new\nline=1", r"run.'new\nline': unknown key"),
        ("task.name=new\u2028line", r"unknown task 'new\u2028line'"),
        (f"run.{'x' * 3000}=1", f"run.'{'x' * 99} ...: unknown key"),
        (f"algorithm.{'x' * 3000}=1", "x: unknown setting"),
        ("run.trackers=wandb", "run.trackers: must be a list, got 'wandb'; write [wandb]"),
        ("agents.*.sampling.stop=['']", "error: agents.*.sampling.stop.0: string should have at"),
        ("task.horizon=.nan", "error: task.horizon: must hold finite numbers, got nan"),
        ("task.strings=[.nan]", "error: task.strings: must hold finite numbers, got nan"),
        (f"models.*.path={'x' * 3000}", "is neither a folder nor a name that a hub can have"),
    ],
)
def test_an_odd_text_leaves_an_error_one_line(
    pair: str, told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["colearn", "train", "quickstart", "--dry-run", "--set", pair])
    with pytest.raises(SystemExit) as stop:
        main()
    err = capsys.readouterr().err
    assert stop.value.code == 2 and err.startswith("error: ")
    assert err.count("\n") == 1 and len(err) < 1000
    assert told in err


@pytest.mark.parametrize(
    ("name", "told"),
    [("quikstart", "did you mean 'quickstart'?"), ("xyz", "see colearn configs")],
)
def test_a_config_that_is_none_is_told_in_a_line_that_a_terminal_shows(
    name: str, told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["colearn", "train", name, "--dry-run"])
    with pytest.raises(SystemExit):
        main()
    err = capsys.readouterr().err
    assert told in err and len(err) < 120


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("trian", "'trian'. Did you mean 'train'?"),
        ("train --sed 4", "--sed (Possible options: --seed, --set)"),
        ("train quickstart --seed four", "'--seed': Input should be a valid integer"),
        ("compare", "Missing argument 'config'."),
        ("export run", "Missing option '--to'"),
        ("report a b", "Got unexpected extra argument"),
        ("compare quickstart --seeds 0", "--seeds 0: is how many seeds, 1 to 10,000; choose"),
        ("compare quickstart --seeds 200000000", "--seeds 200000000: is how many seeds"),
        ("compare quickstart --seeds 99999999999", "--seeds 99999999999: is how many seeds"),
        ("compare table1 --seeds 99999999999", "--seeds 99999999999: is how many seeds"),
        ("train quickstart --dry-run --set train.episodes=100000000000", "train.episodes: "),
        ("train quickstart --dry-run --set evaluation.episodes=1000000001", "evaluation.episodes"),
        ("train quickstart --dry-run --set evaluation.repeats=1000000001", "evaluation.repeats: "),
        ("train quickstart --dry-run --set run.step_workers=100000000", "run.step_workers: "),
        ("compare quickstart --dry-run --set compare.workers=100000000", "compare.workers: "),
    ],
)
def test_a_wrong_command_is_one_line(
    arguments: str,
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["colearn", *arguments.split()])
    with pytest.raises(SystemExit) as stop:
        main()
    err = capsys.readouterr().err
    assert stop.value.code == 2 and told in err
    assert err.startswith("error: ") and err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["train", "quickstart", "--out", ""], "--out: is empty; write its value, or leave it out"),
        (["train", "quickstart", "--out="], "--out: is empty; "),
        (["train", "quickstart", "--out", "  "], "--out: is empty; "),
        (["new", "task", "two_rooms", "--out", ""], "--out: is empty; "),
        (["export", "run", "--to", ""], "--to: is empty; "),
        (["export", "", "--to", "x"], "an argument is empty; write a name or a path there"),
        (["report", ""], "an argument is empty; "),
        (["serve", "agent", "--token-file", ""], "--token-file: is empty; "),
    ],
)
def test_an_empty_argument_is_not_the_current_folder(
    arguments: list[str],
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["colearn", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    err = capsys.readouterr().err
    assert stop.value.code == 2 and err.startswith(f"error: {told}") and err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("parent", ["abc", "", "-1", "9" * 400])
def test_a_parent_that_is_no_process_is_named(
    parent: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("COLEARN_PARENT", parent)
    out = str(tmp_path / "run")
    monkeypatch.setattr(sys, "argv", ["colearn", "train", "quickstart", "--out", out])
    with pytest.raises(SystemExit) as stop:
        main()
    err = capsys.readouterr().err
    assert stop.value.code == 2 and err.count("\n") == 1
    assert err.startswith("error: COLEARN_PARENT: must be the ID of a process, got ")
    assert list(tmp_path.iterdir()) == []


def test_a_config_of_many_megabytes_is_not_read(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "large.yaml"
    with path.open("wb") as file:
        file.truncate(60_000_000_000)  # takes no room on the disk, but could not be held in memory
    monkeypatch.setattr(sys, "argv", ["colearn", "train", str(path), "--dry-run"])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    assert capsys.readouterr().err == (
        f"error: config: {path} is too large to be a config (60000 MB, at most 2 MB); "
        "correct the file\n"
    )


def test_the_bare_command_shows_what_there_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["colearn"])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 0 and "compare" in capsys.readouterr().out


def test_a_command_that_went_well_ends_with_0(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["colearn", "algorithms"])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 0


def test_the_command_that_continues_a_run_is_one_that_a_shell_takes() -> None:
    told = resume_command(Path("my runs/first"))
    assert told == "colearn train --out 'my runs/first' --resume"


def test_a_run_named_without_out_is_answered_with_the_command_that_continues_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["colearn", "train", "--resume", str(tmp_path)])
    with pytest.raises(SystemExit):
        main()
    told = f"error: --out: missing; continue the run with: colearn train --out {tmp_path} --resume"
    assert capsys.readouterr().err == f"{told}\n"
