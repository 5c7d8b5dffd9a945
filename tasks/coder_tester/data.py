"""Loads programming problems: packaged, from the hub, or from a file."""

from __future__ import annotations

from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from colearn.errors import ConfigError
from colearn.programs.sandbox.statements import take_apart

from ..coop_humaneval.parse import parse_quietly
from ..rows import check_trained_on, file_rows, split_rows
from ..step_programs import STEPS, StepProblem, step_problems
from .hub import HUB_SETS
from .problem import Case, ProgrammingProblem

TEST_SHARE = 5
"""Without a separate test split, one problem in TEST_SHARE is in the test split: the last ones of
the packaged problems, and problems drawn with a fixed seed of other data."""
REFERENCES = 3
"""Maximum number of solutions per problem; the first ones are kept."""

PACKAGED = "packaged"
_PACKAGED_FILE = Path(__file__).with_name("problems.jsonl")


def load_problems(
    data: str, test_data: str | None, golden: int
) -> dict[str, tuple[ProgrammingProblem, ...]]:
    """The problems by split, in a fixed order, with at most `golden` tests each. Without
    `test_data`, the test split is the official test split of the data, or a fifth of the data if
    there is none.

    Errors: ConfigError for data that cannot be read or a row that is not a problem; MissingExtra if
    data from the hub need `datasets`.
    """
    if data == STEPS:
        if test_data is not None:
            raise ConfigError(f"task.test_data: {STEPS} has a test split of its own; leave it out")
        return {
            split: tuple(_of_steps(problem, golden) for problem in problems)
            for split, problems in step_problems().items()
        }
    known = HUB_SETS.get(data)
    if known is not None:
        check_trained_on(data, known.tests_only, "apps")
        test_data = test_data or known.tests
    problems = _read(data, golden)
    if data == PACKAGED and test_data is None:
        held_out = len(problems) // TEST_SHARE
        return {"train": problems[:-held_out], "test": problems[-held_out:]}
    tested = None if test_data is None else _read(test_data, golden)
    return split_rows(
        problems, tested, attrgetter("question"), share=TEST_SHARE, data=data, kind="problem"
    )


def _read(data: str, golden: int) -> tuple[ProgrammingProblem, ...]:
    if data in HUB_SETS:
        rows = HUB_SETS[data].rows()
    else:
        path = _PACKAGED_FILE if data == PACKAGED else Path(data).expanduser()
        rows = file_rows(path, ", ".join((PACKAGED, STEPS, *HUB_SETS)))
    return tuple(_problem(row.value, row.where, golden) for row in rows)


def _of_steps(problem: StepProblem, golden: int) -> ProgrammingProblem:
    return ProgrammingProblem(
        name=problem.question,
        question=problem.question,
        tests=tuple(Case(str(x), str(y)) for x, y in problem.tests[:golden]),
        solutions=(problem.program,),
        steps=True,
    )


class _Problem(BaseModel):
    """A row of a file; other keys are ignored."""

    model_config = ConfigDict(strict=True)

    question: Annotated[str, StringConstraints(pattern=r"\S")]
    name: str | None = None
    solutions: list[str] | None = None
    entry_point: str | None = None
    asserts: str = ""
    preamble: str = ""
    inputs: list[str] = []
    outputs: list[str] = []


def _problem(value: Any, location: str, golden: int) -> ProgrammingProblem:
    try:
        row = _Problem.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"])) or "the row"
        raise ConfigError(
            f"task.data: {location}: {field}: {first['msg'].lower()}; fix it"
        ) from None
    name, entry_point = row.name or location, row.entry_point
    solutions = tuple(row.solutions or ())[:REFERENCES]
    if entry_point is not None:
        _check_function(entry_point, row, location)
        return ProgrammingProblem(
            name=name,
            question=row.question,
            entry_point=entry_point,
            asserts=row.asserts,
            preamble=row.preamble,
            solutions=solutions,
        )
    if not row.inputs or len(row.inputs) != len(row.outputs):
        raise ConfigError(
            f"task.data: {location} has {len(row.inputs)} 'inputs' and {len(row.outputs)} "
            "'outputs'; give as many of each, one at least, or 'entry_point' and 'asserts'"
        )
    tests = tuple(map(Case, row.inputs, row.outputs))[:golden]
    return ProgrammingProblem(name=name, question=row.question, tests=tests, solutions=solutions)


def _check_function(entry_point: str, row: _Problem, location: str) -> None:
    """Rejects, at load time, a function that the sandbox would refuse at the first answer."""
    if not entry_point.isidentifier():
        raise ConfigError(f"task.data: {location}: entry_point: {entry_point!r} is no name; fix it")
    try:
        take_apart(row.asserts, entry_point)
        parse_quietly(row.preamble)
    except SyntaxError as error:
        raise ConfigError(
            f"task.data: {location}: preamble: not Python ({error}); fix it"
        ) from None
    except ConfigError as error:
        raise ConfigError(f"task.data: {location}: {error}") from None
