"""Options of the command line as a whole, and what `help(colearn)` begins with."""

from __future__ import annotations

import pydoc

import pytest
from typer.testing import CliRunner

import colearn
from colearn.config import Config
from colearn.entry.cli import app
from colearn.errors import ConfigError
from colearn.runs.comparison.plan import Plan


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

    monkeypatch.setattr("colearn.entry.cli.compare._estimates", estimates)
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


@pytest.mark.parametrize(
    ("seeds", "told"),
    [
        (1, "1 seed: too few"),
        (3, "3 seeds: too few"),
        # 2 of the C(8, 4) = 70 rankings are as far apart: 2 / 70 < 0.05
        (4, "4 seeds tell two algorithms apart"),
    ],
)
def test_a_dry_run_says_what_the_seeds_can_show(
    seeds: int, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("colearn.estimate.estimate", lambda config, **_: config)
    monkeypatch.setattr("colearn.estimate.table.comparison_table", lambda *_: "needs")
    words = ["compare", "quickstart", "--seeds", str(seeds), "--dry-run"]
    lines = CliRunner().invoke(app, words).output.splitlines()
    assert [line.startswith(told) for line in lines[1:]] == [True]


def dry_runs(monkeypatch: pytest.MonkeyPatch, *words: str) -> list[Config]:
    """The configs of which `colearn train quickstart --dry-run` would print the estimates."""
    told: list[Config] = []
    monkeypatch.setattr("colearn.entry.cli.train._estimate", lambda config, *_: told.append(config))
    run = CliRunner().invoke(app, ["train", "quickstart", "--dry-run", *words])
    if run.exception is not None:
        raise run.exception
    return told


def test_a_setting_of_the_command_line_replaces_the_algorithms_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    [own] = dry_runs(monkeypatch, "--algorithm", "magrpo")
    [given] = dry_runs(monkeypatch, "--algorithm", "magrpo", "--set", "train.episodes=8")
    assert (own.train.episodes, given.train.episodes) == (6, 8)
    assert given.algorithm == own.algorithm
    with pytest.raises(ConfigError, match="--algorithm magrpo: --set names an algorithm too"):
        dry_runs(monkeypatch, "--algorithm", "magrpo", "--set", "algorithm.name=coma")


def test_a_comparison_says_which_algorithms_keep_a_setting_of_their_own(
    estimated: dict[str, list[str]],
) -> None:
    words = ["compare", "quickstart", "--dry-run", "--set", "train.episodes=8"]
    assert "--set train.episodes: magrpo keep what" in CliRunner().invoke(app, words).output
    others = CliRunner().invoke(app, [*words, "--algorithms", "collm_cc"])
    assert "keep what" not in others.output
