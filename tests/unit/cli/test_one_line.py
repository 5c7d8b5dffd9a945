"""Odd keys and names in a config leave an error one short line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from colearn.cli import main
from colearn.record.writer import resume_command


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
        ("export run", "--to: name a folder, or a hub's user or organisation with --push"),
        ("export run --to here --private", "--name and --private belong to --push"),
        ("report a b", "Got unexpected extra argument"),
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
