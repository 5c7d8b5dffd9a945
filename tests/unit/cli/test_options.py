"""Options of the command line as a whole, and what `help(colearn)` begins with."""

from __future__ import annotations

import pydoc

import pytest
from typer.testing import CliRunner

import colearn
from colearn.cli import app
from colearn.comparison.plan import Plan


def test_the_version_is_one_line() -> None:
    run = CliRunner().invoke(app, ["--version"])
    assert (run.exit_code, run.output) == (0, f"colearn {colearn.__version__}\n")


def test_shells_are_offered_completion() -> None:
    run = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "120"})
    assert "--install-completion" in run.output and "--show-completion" in run.output


def test_help_begins_with_the_names_that_people_use() -> None:
    text = pydoc.plain(pydoc.render_doc(colearn))
    before = text[: text.index("PACKAGE CONTENTS")]
    for name in set(colearn.__all__) - {"Config", "Tree", "__version__"}:
        assert f"{name}(" in before


def test_a_number_of_seeds_is_told_from_seeds() -> None:
    run = CliRunner().invoke(app, ["compare", "quickstart", "--seeds", "0"])
    assert str(run.exception) == (
        "--seeds 0: is how many seeds, 1 to 10,000; choose which with compare.seeds=[0]"
    )


@pytest.fixture
def estimated(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """The algorithms of each comparison of which a dry run would print the estimates."""
    told: dict[str, list[str]] = {}

    def estimates(title: str, plan: Plan, machine: object) -> None:
        told[title] = list(plan.algorithms)

    monkeypatch.setattr("colearn.cli.compare._estimates", estimates)
    return told


@pytest.mark.parametrize("given", [["magrpo,coma"], ["magrpo", "coma"], ["magrpo,", " coma"]])
def test_algorithms_of_a_comparison_add_up(
    given: list[str], estimated: dict[str, list[str]]
) -> None:
    words = [word for names in given for word in ("--algorithms", names)]
    CliRunner().invoke(app, ["compare", "quickstart", *words, "--dry-run"])
    assert estimated == {"quickstart": ["magrpo", "coma"]}


def test_tasks_of_a_suite_add_up(estimated: dict[str, list[str]]) -> None:
    words = ["--tasks", "sudoku", "--tasks", "sokoban", "--algorithms", "at_grpo"]
    CliRunner().invoke(app, ["compare", "stronger_mas", *words, "--dry-run"])
    assert estimated == {"sudoku": ["at_grpo"], "sokoban": ["at_grpo"]}
