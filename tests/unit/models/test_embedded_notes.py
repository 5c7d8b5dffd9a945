"""What the user is told while an embedded model is made."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from colearn.config import load_config
from colearn.config.build import build_task
from colearn.models.embedded import _lock, embedded_model


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


def test_waiting_for_another_process_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "embedded-1"
    held, over = threading.Event(), threading.Event()

    def hold() -> None:
        with FileLock(f"{folder}.lock"):
            held.set()
            over.wait(0.3)

    other = threading.Thread(target=hold)
    other.start()
    held.wait()
    with _lock("embedded", folder):
        other.join()
    told = "note: waits for the model 'embedded', which another process makes\n"
    assert capsys.readouterr().err == told
