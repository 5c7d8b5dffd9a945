"""Records of another version of colearn are refused in one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import colearn
from colearn.errors import CheckpointError
from colearn.runs.record import RunFolder
from tests.helpers.fabricated_runs import record


def test_a_run_of_another_version_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(
        json.dumps(record("magrpo", 0, [0.5, 0.6], "finished") | {"version": "0.0.9"})
    )
    with pytest.raises(CheckpointError) as raised:
        RunFolder(tmp_path).record()
    line = str(raised.value)
    assert f"was recorded by colearn 0.0.9, and this is {colearn.__version__}" in line
    assert "\n" not in line
