"""Converts problems on the hub to this task's row format, without running any of their code."""

from __future__ import annotations

import base64
import io
import pickle
import zlib
from collections.abc import Mapping
from typing import Any

from colearn.errors import ConfigError
from colearn.text.json_value import read_json

from ..coop_humaneval.hub import mbpp_row
from ..rows import HubSplit

Row = dict[str, Any]
_PYTHON_3 = 3
"""The language's number in CodeContests."""


def humaneval_row(row: Mapping[str, Any]) -> Row:
    """A problem that asks for a function, with its asserts."""
    return {
        "name": row["task_id"],
        "question": row["prompt"],
        "entry_point": row["entry_point"],
        "asserts": row["test"],
        "preamble": row["prompt"],
        "solutions": [row["prompt"] + row["canonical_solution"]],
    }


def mbpp_as_row(row: Mapping[str, Any]) -> Row:
    """A problem that asks for a function, with its asserts."""
    problem = mbpp_row(row)
    return {
        "name": problem["task_id"],
        "question": problem["prompt"],
        "entry_point": problem["entry_point"],
        "asserts": problem["test"],
        "solutions": [row["code"]],
    }


def apps_row(row: Mapping[str, Any]) -> Row | None:
    """A problem that asks for a program; None if the row asks for a function or has no tests."""
    known = read_json(row["input_output"] or "{}")
    if known.get("fn_name") or not known.get("inputs"):
        return None
    return {
        "name": f"APPS/{row['problem_id']}",
        "question": row["question"],
        "inputs": [_lines(text) for text in known["inputs"]],
        "outputs": [_lines(text) for text in known["outputs"]],
        "solutions": read_json(row["solutions"] or "[]"),
    }


def introductory(row: Mapping[str, Any]) -> Row | None:
    """Converts a row as `apps_row` does if the problem is in the easiest third, on which
    Stronger-MAS trains its smaller model; else returns None."""
    return apps_row(row) if row["difficulty"] == "introductory" else None


def codecontests_row(row: Mapping[str, Any]) -> Row:
    """A problem that asks for a program, with public, private and generated tests in this order,
    and its solutions in Python 3."""
    kinds = [row[f"{kind}_tests"] for kind in ("public", "private", "generated")]
    known = zip(row["solutions"]["language"], row["solutions"]["solution"], strict=True)
    return {
        "name": f"CodeContests/{row['name']}",
        "question": row["description"],
        "inputs": [text for kind in kinds for text in kind["input"]],
        "outputs": [text for kind in kinds for text in kind["output"]],
        "solutions": [program for language, program in known if language == _PYTHON_3],
    }


def livecodebench_row(row: Mapping[str, Any]) -> Row | None:
    """A problem that asks for a program; None if the row asks for a function. The data has no
    solutions."""
    name = f"LiveCodeBench/{row['question_id']}"
    cases = [*read_json(row["public_test_cases"]), *private_cases(row["private_test_cases"], name)]
    if any(case["testtype"] != "stdin" for case in cases):
        return None
    return {
        "name": name,
        "question": row["question_content"],
        "inputs": [case["input"] for case in cases],
        "outputs": [case["output"] for case in cases],
    }


class _Plain(pickle.Unpickler):
    """An unpickler that reads only text and numbers and refuses anything that would run code."""

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        raise pickle.UnpicklingError(f"{module_name}.{global_name} is no plain value")


def private_cases(text: str, name: str) -> list[dict[str, str]]:
    """Reads tests stored as JSON, or as pickled JSON, compressed and encoded in base64.

    Errors: ConfigError for tests in any other form, and for a pickle that holds more than text.
    """
    try:
        return list(read_json(text))
    except (TypeError, ValueError):
        pass
    try:
        packed = zlib.decompress(base64.b64decode(text.encode()))
        return list(read_json(_Plain(io.BytesIO(packed)).load()))
    except Exception as error:  # noqa: BLE001 - a damaged pickle raises nearly anything
        raise ConfigError(f"task.data: the private tests of {name} are unreadable ({error})") from (
            None
        )


def _lines(text: Any) -> str:
    """Returns an input or output of APPS as text; some of them are lists of lines."""
    return "\n".join(map(str, text)) if isinstance(text, list) else str(text)


_APPS, _CONTESTS = "metr-evals/apps", "deepmind/code_contests"
_MBPP, _LIVE = "google-research-datasets/mbpp", "lighteval/code_generation_lite"
HUB_SETS = {
    "humaneval": HubSplit("openai/openai_humaneval", None, "test", humaneval_row),
    "mbpp": HubSplit(_MBPP, "sanitized", "train", mbpp_as_row, tests="mbpp_test"),
    "mbpp_test": HubSplit(_MBPP, "sanitized", "test", mbpp_as_row, tests_only=True),
    "apps": HubSplit(_APPS, None, "train", introductory, tests="apps_test"),
    "apps_test": HubSplit(_APPS, None, "test", apps_row, tests_only=True),
    "codecontests": HubSplit(_CONTESTS, None, "train", codecontests_row, tests="codecontests_test"),
    "codecontests_test": HubSplit(_CONTESTS, None, "test", codecontests_row, tests_only=True),
    "livecodebench": HubSplit(_LIVE, "v6", "test", livecodebench_row, tests_only=True),
}
"""Data sets by their names in `task.data`. APPS and LiveCodeBench are copies without a loading
script, since `datasets` no longer runs scripts. HumanEval has only a test split; this task trains
on four fifths of that split."""
