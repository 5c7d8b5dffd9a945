"""Loads problems: packaged, from a file in CoopHumanEval's format, or from the hub."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

from colearn.errors import ConfigError
from colearn.programs.sandbox.statements import take_apart

from ..rows import file_rows, split_rows
from .hub import HUB_SETS
from .parse import AUX, surroundings
from .settings import DATA

TEST_SHARE = 5
"""One problem in TEST_SHARE is in the test split: the last ones of the packaged problems and of the
paper's 82 items, [66:82] (C.1), and problems drawn with a fixed seed of other data."""
_IN_ORDER = ("packaged", "hub")

_PACKAGED = Path(__file__).with_name("problems.jsonl")
_COLUMNS = ("prompt", "entry_point", "test")


@dataclass(frozen=True, slots=True, kw_only=True)
class HumanEvalProblem:
    name: str
    prompt: str
    """The signature and docstring of the main function, with the code around them."""
    entry_point: str
    """The main function's name."""
    params: str
    """The main function's parameters as source text."""
    summary: str
    """The main function's docstring up to the first example, on one line."""
    preamble: str
    """The prompt's imports and helpers, with which the joint program begins."""
    tests: str
    """Python source; each statement with an `assert` is a test."""
    asserts: tuple[str, ...]
    """The tests one by one, for the feedback."""
    reference: tuple[str, str] | None
    """Auxiliary and main function of a solution, if the data has one."""

    def __str__(self) -> str:
        return self.name


def load_problems(data: str) -> dict[str, tuple[HumanEvalProblem, ...]]:
    """The problems by split, in a fixed order.

    Errors: ConfigError for data that cannot be read or a row that is not a problem; MissingExtra if
    data from the hub need `datasets`.
    """
    if data in HUB_SETS:
        rows = HUB_SETS[data].rows()
    else:
        path = _PACKAGED if data == "packaged" else Path(data).expanduser()
        rows = file_rows(path, ", ".join(DATA))
    problems = tuple(_problem(row.value, row.where) for row in rows)
    if data in _IN_ORDER:
        held_out = len(problems) // TEST_SHARE
        return {"train": problems[:-held_out], "test": problems[-held_out:]}
    return split_rows(
        problems, None, attrgetter("prompt"), share=TEST_SHARE, data=data, kind="problem"
    )


def _problem(row: Any, location: str) -> HumanEvalProblem:
    texts = {}
    for key in _COLUMNS:
        value = row.get(key) if isinstance(row, Mapping) else None
        if not isinstance(value, str) or not value.strip():
            raise ConfigError(f"task.data: {location} has no text '{key}'; fix it")
        texts[key] = value
    name, entry_point = str(row.get("task_id", location)), texts["entry_point"]
    try:
        function, preamble = surroundings(texts["prompt"], entry_point)
    except SyntaxError as error:
        raise ConfigError(
            f"task.data: the prompt of {name} is not Python ({error}); give signature and docstring"
        ) from None
    if function is None or entry_point == AUX:
        raise ConfigError(
            f"task.data: the prompt of {name} does not define '{entry_point}' beside aux; "
            "fix prompt or entry_point"
        )
    try:
        statements = take_apart(texts["test"], entry_point)
    except ConfigError as error:
        raise ConfigError(f"task.data: {name}: {error}") from None
    reference = (row.get("aux"), row.get("main"))
    known = all(isinstance(part, str) and part.strip() for part in reference)
    return HumanEvalProblem(
        name=name,
        prompt=texts["prompt"],
        entry_point=entry_point,
        params=ast.unparse(function.args),
        summary=" ".join((ast.get_docstring(function) or "").partition(">>>")[0].split()),
        preamble=preamble,
        tests=texts["test"],
        asserts=tuple(source for number, source in statements.sources if number is not None),
        reference=(str(reference[0]), str(reference[1])) if known else None,
    )
