"""A run's page while it trains: `colearn train --watch`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tiny import register, save_model

from colearn.entry.cli import main, run_display


def test_a_run_keeps_a_page_that_reads_itself_anew_until_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    register(monkeypatch, notes="tiny:Notes")
    written: list[str] = []
    write = run_display.write_text

    def recorded(path: Path, text: str) -> None:
        written.append(text)
        write(path, text)

    monkeypatch.setattr(run_display, "write_text", recorded)
    monkeypatch.setattr(run_display, "_SECONDS", 0.0)
    config = tmp_path / "config.yaml"
    settings = {
        "task": {"name": "notes", "horizon": 1, "items": 2},
        "algorithm": {"name": "magrpo"},
        "models": {"*": {"path": save_model(tmp_path / "model")}},
        "agents": {"*": {"sampling": {"max_tokens": 3}}},
        "train": {"iterations": 1, "episodes": 1, "environment_steps": 100},
        "run": {"device": "cpu"},
    }
    config.write_text(json.dumps(settings))
    out = tmp_path / "run"
    command = ["colearn", "train", str(config), "--out", str(out), "--watch"]
    monkeypatch.setattr("sys.argv", command)
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code
    refreshing = ['http-equiv="refresh"' in page for page in written]
    # an evaluation, an update, an evaluation, the end
    assert refreshing == [True, True, True, False]
    assert [page.count("Return in training") > 0 for page in written] == [False, *[True] * 3]
    page = out / "watch.html"
    assert page.read_text() == written[-1]
    assert f"watch: {page.as_uri()}" in capsys.readouterr().err
