"""Paths of options that a shell passes as they were written."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from colearn.config import load_config
from colearn.entry.cli import main
from colearn.errors import ConfigError
from colearn.runs.record.place import named_folder


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["colearn", *words])
    with pytest.raises(SystemExit) as stop:
        main()
    assert isinstance(stop.value.code, int)
    return stop.value.code


def test_a_tilde_behind_an_option_is_the_home_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shell replaces `~` in `--out ~/made` and not in `--out=~/made`."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "home").mkdir()
    assert run(monkeypatch, "new", "task", "alpha", "--out=~/made") == 0
    assert (tmp_path / "home" / "made" / "alpha.py").is_file()
    assert [path.name for path in tmp_path.iterdir()] == ["home"]
    assert named_folder("~/made") == tmp_path / "home" / "made"


def test_the_home_of_an_unknown_user_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(monkeypatch, "new", "task", "alpha", "--out=~nobody_has_this/made") == 2
    assert capsys.readouterr().err == (
        "error: --out ~nobody_has_this/made: no such user's home; write the whole path\n"
    )
    assert not list(tmp_path.iterdir())


def test_a_tracker_that_is_named_twice_is_one_line() -> None:
    config = {
        "task": {"name": "str_build"},
        "algorithm": {"name": "magrpo"},
        "models": {"*": {"path": "embedded"}},
        "run": {"trackers": ["wandb", "tensorboard", "wandb"]},
    }
    with pytest.raises(ConfigError, match=r"run\.trackers\.2: 'wandb' is named twice"):
        load_config(config)
