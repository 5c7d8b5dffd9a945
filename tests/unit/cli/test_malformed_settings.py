"""Every setting refuses what its type and bounds exclude: one line that names it, exit 2."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import yaml
from malformed_settings import Wrong, every_setting, of_suite
from tiny import register, save_model

from colearn.entry.cli import main

Command = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("config")
    model = save_model(folder / "model")
    path = folder / "config.yaml"
    whole = {
        "task": {"name": "notes", "horizon": 1, "items": 2},
        "models": {"*": {"path": model}},
        "critic": {"path": model},
        "train": {"environment_steps": 2, "episodes": 2},
        "run": {"device": "cpu"},
    }
    path.write_text(yaml.safe_dump(whole))
    return path


@pytest.fixture
def colearn(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    register(monkeypatch, notes="tiny:Notes")

    def run(*arguments: object) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["colearn", *map(str, arguments)])
        try:
            main()
        except SystemExit as stop:
            return int(stop.code or 0), capsys.readouterr().err
        return 0, capsys.readouterr().err

    return run


def complaint(colearn: Command, named: str, *arguments: object) -> str | None:
    """What is wrong with how a mistake was answered."""
    try:
        code, err = colearn(*arguments)
    except Exception as error:  # noqa: BLE001 - a traceback is what is looked for
        return f"{type(error).__name__}: {str(error)[:200]}"
    if code != 2:
        return f"exit {code}"
    if not err.startswith("error: ") or err.count("\n") != 1 or not err.endswith("\n"):
        return f"not one line: {err[:300]!r}"
    if len(err) >= 1000 or named not in err:
        return f"does not name {named}: {err[:300]!r}"
    return None


def complaints(colearn: Command, cases: Sequence[Wrong], *arguments: object) -> list[str]:
    return [
        f"{case}: {problem}"
        for case in cases
        if (problem := complaint(colearn, case.named, *arguments, *case.sets)) is not None
    ]


def test_a_share_of_the_wrong_settings_are_one_line_each(colearn: Command, config: Path) -> None:
    cases = every_setting()[::97]
    assert len(cases) > 40
    assert complaints(colearn, cases, "train", config, "--dry-run") == []


@pytest.mark.slow
def test_all_wrong_settings_are_one_line_each(colearn: Command, config: Path) -> None:
    cases = every_setting()
    assert len(cases) > 4000
    assert complaints(colearn, cases, "train", config, "--dry-run") == []


def test_wrong_settings_of_a_suite_are_one_line_each(colearn: Command) -> None:
    cases = list(of_suite())
    assert len(cases) > 60
    assert complaints(colearn, cases, "compare", "stronger_mas", "--dry-run") == []
