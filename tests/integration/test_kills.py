"""Killed at random moments, runs and comparisons end as if nothing had happened."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "kills"), [("run", 10), ("comparison", 3)])
def test_what_is_killed_and_goes_on_ends_as_the_uninterrupted_one(
    kind: str, kills: int, tmp_path: Path
) -> None:
    """With COLEARN_KILLS a file that `benchmarks/kills.py` has begun gets so many more."""
    file = Path(os.environ.get("COLEARN_KILLS", tmp_path / "kills.jsonl"))
    before = lines(file, kind)
    wanted = {"run": 0, "comparison": 0, kind: kills + sum(line["kills"] for line in before)}
    command = [sys.executable, str(ROOT / "benchmarks" / "kills.py"), str(file)]
    numbers = ["--kills", wanted["run"], "--comparison-kills", wanted["comparison"]]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([*command, *map(str, numbers)], check=True, env=environment)
    records = lines(file, kind)[len(before) :]
    assert sum(line["kills"] for line in records) >= kills
    assert all(line["same"] for line in records)
    assert all(line.get("lost", 0) <= 2 for line in records), "a checkpoint is made every two"


def lines(file: Path, kind: str) -> list[dict[str, object]]:
    if not file.exists():
        return []
    every = [json.loads(text) for text in file.read_text(encoding="utf-8").splitlines()]
    return [line for line in every if line["kind"] == kind]
