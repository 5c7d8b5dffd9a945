"""Options of the command line as a whole, and what `help(colearn)` begins with."""

from __future__ import annotations

import pydoc

import pytest
from typer.testing import CliRunner

import colearn
from colearn.cli import app


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


@pytest.mark.parametrize("given", [["magrpo,coma"], ["magrpo", "coma"], ["magrpo,", " coma"]])
def test_algorithms_of_a_comparison_add_up(given: list[str]) -> None:
    words = [word for names in given for word in ("--algorithms", names)]
    run = CliRunner().invoke(
        app, ["compare", "quickstart", *words, "--dry-run"], env={"COLUMNS": "120"}
    )
    entries = [line.split()[1] for line in run.output.splitlines() if line.startswith("│")]
    assert entries == ["magrpo", "coma"]


def test_tasks_of_a_suite_add_up() -> None:
    words = ["--tasks", "sudoku", "--tasks", "sokoban", "--algorithms", "at_grpo"]
    run = CliRunner().invoke(
        app, ["compare", "stronger_mas", *words, "--dry-run"], env={"COLUMNS": "120"}
    )
    titles = [line.strip() for line in run.output.splitlines() if line.startswith(" ")]
    assert titles == ["sudoku", "sokoban"]
