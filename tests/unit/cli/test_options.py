"""Options of the command line as a whole, and what `help(colearn)` begins with."""

from __future__ import annotations

import pydoc

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
        "--seeds 0: is how many seeds, 1 or more; choose which with --set compare.seeds=[0]"
    )
