"""What the user is told while an embedded model is made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from colearn.config import load_config
from colearn.config.build import build_task
from colearn.models.embedded import embedded_model


@pytest.mark.slow
def test_making_a_model_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLEARN_CACHE", str(tmp_path))
    task: Any = build_task(load_config("tiny/str_build"))
    folder = embedded_model(task, "embedded-tiny", "models.a.path")
    first, *progress = capsys.readouterr().err.splitlines()
    assert first == (
        f"note: makes the model 'embedded-tiny' for this task, once; it is kept in {folder}, and "
        "later runs of the task begin with it"
    )
    assert all(line.endswith(" s left") for line in progress)
    assert embedded_model(task, "embedded-tiny", "models.a.path") == folder
    assert capsys.readouterr().err == ""
