"""Where the problems come from: packaged, the hub, or a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from colearn.errors import ConfigError
from colearn.sandbox.statements import take_apart

from ..rows import file_rows
from .hub import HUB_SETS
from .problem import Case, Problem

TEST_SHARE = 5
"""Of data with one split, the last fifth is tested."""
REFERENCES = 3
"""Solutions that are kept, the first ones."""

_PACKAGED = Path(__file__).with_name("problems.jsonl")


def load_problems(data: str, test_data: str | None, golden: int) -> dict[str, tuple[Problem, ...]]:
    """The problems by split, in a fixed order, with at most `golden` tests each.

    Errors: ConfigError for data that cannot be read or a row that is no problem; MissingExtra
    where the hub's need `datasets`.
    """
    problems = _read(data, golden)
    if test_data is None:
        held_out = max(len(problems) // TEST_SHARE, 1)
        found = {"train": problems[:-held_out], "test": problems[-held_out:]}
    else:
        tested = _read(test_data, golden)
        known = {problem.question for problem in tested}
        found = {
            "train": tuple(p for p in problems if p.question not in known),
            "test": tested,
        }
    for split, kept in found.items():
        if not kept:
            raise ConfigError(f"task.data: {data} leaves no problem to {split}; add some")
    return found


def _read(data: str, golden: int) -> tuple[Problem, ...]:
    if data in HUB_SETS:
        rows: list[Any] = HUB_SETS[data].rows()
    else:
        path = _PACKAGED if data == "packaged" else Path(data).expanduser()
        rows = file_rows(path, ", ".join(("packaged", *HUB_SETS)))
    return tuple(_problem(row, f"row {k} of {data}", golden) for k, row in enumerate(rows, start=1))


def _problem(row: Any, where: str, golden: int) -> Problem:
    question = row.get("question") if isinstance(row, Mapping) else None
    if not isinstance(question, str) or not question.strip():
        raise ConfigError(f"task.data: {where} has no text 'question'; mend it")
    name, entry_point = str(row.get("name", where)), row.get("entry_point")
    solutions = tuple(str(program) for program in row.get("solutions") or ())[:REFERENCES]
    if entry_point is not None:
        asserts = str(row.get("asserts", ""))
        try:
            take_apart(asserts, entry_point)
        except ConfigError as error:
            raise ConfigError(f"task.data: {name}: {error}") from None
        return Problem(
            name=name,
            question=question,
            entry_point=entry_point,
            asserts=asserts,
            preamble=str(row.get("preamble", "")),
            solutions=solutions,
        )
    inputs, outputs = row.get("inputs", ()), row.get("outputs", ())
    if not inputs or len(inputs) != len(outputs):
        raise ConfigError(
            f"task.data: {name} has {len(inputs)} 'inputs' and {len(outputs)} 'outputs'; give as "
            "many of each, one at least, or 'entry_point' and 'asserts'"
        )
    pairs = list(zip(inputs, outputs, strict=True))[:golden]
    tests = tuple(Case(str(given), str(wanted)) for given, wanted in pairs)
    return Problem(name=name, question=question, tests=tests, solutions=solutions)
