"""Equal evaluations of a row that was not trained are one draw, however many runs made them."""

import json

import fabricated_runs as fabricated
import pytest
from undrawn import undrawn

from colearn.runs.report import write_report
from colearn.runs.report.source import read_source
from colearn.runs.report.summarise import summarise


def write_untrained(folder, returns, *, updates=0, name="untrained"):
    """Runs that are one evaluation each, with this return by seed and times of their own."""
    for seed, value in enumerate(returns):
        run = folder / "runs" / f"{name}-s{seed}"
        fabricated.write_run(run, name, seed)
        metrics = {"return": value, "iou": 0.5, "turns": 2.0, "response_seconds": 1.0 + seed}
        line = fabricated.evaluations(name, [0.0, value])[-1] | {
            "iteration": 0,
            "environment_steps": 0,
            "updates": updates,
            "metrics": metrics,
        }
        fabricated.write_jsonl(run / "metrics.jsonl", [line])
        record = json.loads((run / "run.json").read_text())
        (run / "run.json").write_text(json.dumps(record | {"updates": updates}))


def write_trained(folder, seeds=range(4)):
    """Trained runs, all above 0.1 at the end: `collm_cc` gains 0.9 from -0.25."""
    for seed in seeds:
        fabricated.write_run(folder / "runs" / f"collm_cc-s{seed}", "collm_cc", seed)


def told(summary):
    return " ".join([summary["headline"], *summary["notes"]])


def summary_of(folder):
    """As a report writes it, without the report's pictures."""
    summarise(read_source(folder)).write(folder / "summary.json")
    return json.loads((folder / "summary.json").read_text())


@pytest.fixture(scope="module")
def four_equal(tmp_path_factory):
    """The report of four equal evaluations of an untrained row beside four trained runs."""
    folder = tmp_path_factory.mktemp("four_equal")
    write_untrained(folder, [-0.25] * 4)
    write_trained(folder)
    with undrawn():
        write_report(folder)
    return folder


def pair(summary):
    (found,) = (p for p in summary["pairs"] if p["x"] == "collm_cc")
    return found


def test_four_equal_evaluations_of_an_untrained_row_are_one_seed(four_equal):
    summary = json.loads((four_equal / "summary.json").read_text())
    # four against four would tell them apart (p = 2 / 70); one against four cannot (2 / 5)
    assert (pair(summary)["differs"], pair(summary)["enough_seeds"]) == (False, False)
    last = summary["algorithms"]["untrained"]["metrics"]["return"]["last"]
    assert last == {"mean": -0.25, "low": None, "high": None, "seeds": 1}
    assert len(summary["runs"]) == 8
    sentence = (
        "untrained was not trained, and its 4 runs have equal evaluations: they count as one seed."
    )
    assert sentence in told(summary)
    assert sentence in (four_equal / "table.md").read_text()
    assert sentence in (four_equal / "report.html").read_text()


def test_untrained_models_that_differ_by_seed_count_each(tmp_path):
    write_untrained(tmp_path, [-0.25, -0.2, -0.15, -0.1])
    write_trained(tmp_path)
    summary = summary_of(tmp_path)
    assert (pair(summary)["differs"], pair(summary)["enough_seeds"]) == (True, True)
    assert "not trained" not in told(summary)


def test_of_some_repeats_the_different_ones_count(tmp_path):
    write_untrained(tmp_path, [-0.25, -0.2, -0.25, -0.2, -0.2])
    write_trained(tmp_path)
    summary = summary_of(tmp_path)
    assert summary["algorithms"]["untrained"]["seeds"] == [0, 1]
    last = summary["algorithms"]["untrained"]["metrics"]["return"]["last"]
    assert last["mean"] == pytest.approx(-0.225)
    assert (
        "untrained was not trained, and its 5 runs have 2 different evaluations: "
        "they count as 2 seeds." in told(summary)
    )


def test_trained_runs_that_end_alike_count_each(tmp_path):
    write_untrained(tmp_path, [-0.25] * 4, updates=3, name="magrpo")
    write_trained(tmp_path)
    summary = summary_of(tmp_path)
    assert summary["algorithms"]["magrpo"]["seeds"] == [0, 1, 2, 3]
    assert pair(summary)["differs"] is True


def test_a_page_with_an_untrained_row_does_not_say_that_all_rows_have_one_seed(four_equal):
    assert "neither a change nor a difference" not in (four_equal / "report.html").read_text()
