"""Runs that exceed the budget of environment steps are told in the report's first sentences."""

import json
import sys

import fabricated_runs as fabricated
import pytest

from colearn.entry.cli import main
from colearn.runs.report.finding import budget_note, unequal_note
from colearn.runs.report.source import read_source
from colearn.runs.report.summarise import summarise


@pytest.mark.parametrize("used", [[400], [440, 430], []])
def test_up_to_a_tenth_beyond_the_budget_is_not_told(used):
    assert budget_note("magrpo", 400, used) == ""


def test_without_one_budget_for_all_algorithms_nothing_is_told():
    assert budget_note("magrpo", None, [640]) == ""


def test_runs_beyond_the_budget_are_told_with_their_mean():
    assert budget_note("magrpo", 400, [1240, 1260]) == (
        "magrpo made 1,250 environment steps with a budget of 400, because an iteration is never "
        "cut; fewer train.episodes make an iteration smaller."
    )


def test_the_headline_has_the_note_of_the_algorithm_that_exceeds_the_budget(tmp_path):
    for algorithm in ("collm_cc", "magrpo"):
        run = tmp_path / "runs" / f"{algorithm}-s0"
        fabricated.write_run(run, algorithm, 0)
        if algorithm == "magrpo":
            lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
            lines[-1]["environment_steps"] = 640
            fabricated.write_jsonl(run / "metrics.jsonl", lines)
    summary = summarise(read_source(tmp_path))
    headline = " ".join([summary.headline, *summary.notes])
    assert "magrpo made 640 environment steps with a budget of 400" in headline
    assert "collm_cc made" not in headline


def test_final_values_at_unequal_steps_are_told_as_such():
    """1,360 steps of 320 beside 320; runs that learn nothing make none."""
    assert unequal_note({"collm_cc": [320, 320], "magrpo": [1360, 1360], "untrained": [0]}) == (
        "The final values are neither compared at equal environment steps nor interpolated; the "
        "fewest steps are those of collm_cc, the most those of magrpo."
    )
    assert unequal_note({"collm_cc": [320], "magrpo": [340]}) == ""
    assert unequal_note({"magrpo": [1360], "untrained": [0]}) == ""


@pytest.mark.usefixtures("no_figures")
def test_unequal_steps_are_told_on_the_page_in_the_table_the_summary_and_the_terminal(
    tmp_path, monkeypatch, capsys
):
    for algorithm in ("collm_cc", "magrpo"):
        run = tmp_path / "runs" / f"{algorithm}-s0"
        fabricated.write_run(run, algorithm, 0)
        if algorithm == "magrpo":
            lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
            lines[-1]["environment_steps"] = 6400
            fabricated.write_jsonl(run / "metrics.jsonl", lines)
    monkeypatch.setattr(sys, "argv", ["colearn", "report", str(tmp_path)])
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code
    told = "neither compared at equal environment steps nor interpolated"
    assert told in " ".join(capsys.readouterr().out.split())
    for name in ("report.html", "table.md", "summary.json"):
        assert told in (tmp_path / name).read_text(), name
