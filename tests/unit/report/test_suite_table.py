"""The figures of a suite's table, on run folders with known numbers."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import fabricated_runs as fabricated
import pytest

import colearn
from colearn.config import SuiteSettings
from colearn.runs.record import ComparisonEntry, ComparisonFolder, ComparisonRecord
from colearn.runs.report.suite_report import print_suite_table, write_suite_report
from colearn.runs.report.suite_table import read_figures
from colearn.text.terminal import Terminal

SUITE = SuiteSettings.model_validate(
    {
        "name": "board",
        "title": "A board",
        "size": "small",
        "sizes": {"small": {"walls": "small/walls"}},
        "rows": {"raw": "Raw", "cc": "CC", "dc": "DC"},
        "columns": {
            "walls": {
                "title": "Walls",
                "metrics": [
                    {"metric": "iou", "title": "IoU", "scale": 100},
                    {"metric": "adjacency", "title": "Adj", "scale": 100, "best": "low"},
                ],
            }
        },
    }
)
LAST = {"return": 1.0, "response_seconds": 0.5, "turns": 4.0, "tokens_per_turn": 30.0}


def write(folder: Path, runs: dict[str, dict[str, Any] | str]) -> None:
    """Runs by name: the metrics of the last evaluation, or the log of a run that has none."""
    entries = [
        ComparisonEntry(run=name, algorithm=name.partition("-")[0], seed=int(name[-1]))
        for name in runs
    ]
    labels = tuple(dict.fromkeys(entry.algorithm for entry in entries))
    planned = ComparisonRecord(version=colearn.__version__, algorithms=labels, runs=tuple(entries))
    ComparisonFolder(folder / "walls").write(planned)
    for name, metrics in runs.items():
        path = folder / "walls" / "runs" / name
        path.mkdir(parents=True)
        if isinstance(metrics, str):
            (path / "log.txt").write_text(metrics)
            continue
        record = fabricated.record("any", int(name[-1]), [0.1, 1.0], "finished")
        (path / "run.json").write_text(json.dumps(record))
        line = {
            "kind": "evaluation",
            "environment_steps": 0,
            "generated_tokens": 0,
            "updates": 0,
            "wall_seconds": 0.0,
        }
        lines = [
            line | {"iteration": 0, "metrics": LAST | {"iou": 0.1, "adjacency": 0.9}},
            line | {"iteration": 8, "metrics": LAST | metrics},
        ]
        (path / "metrics.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))


def means(folder: Path, label: str) -> list[float | None]:
    return [v and v.mean for v in read_figures(SUITE, folder).values[label]]


def test_time_is_the_response_time_of_all_turns_and_metrics_are_in_percent(tmp_path):
    write(tmp_path, {"cc-s0": {"iou": 0.75, "adjacency": 0.125}})
    assert means(tmp_path, "cc") == [2.0, 30.0, 75.0, 12.5]


def test_the_micro_turns_of_a_pipeline_add_up(tmp_path):
    runs = {"cc-s0": {"iou": 1, "adjacency": 0}, "dc-s0": {"iou": 1, "adjacency": 0, "turns": 8.0}}
    write(tmp_path, runs)
    assert means(tmp_path, "dc")[:2] == [4.0, 30.0]


def test_the_best_of_time_cost_and_adjacency_is_the_lowest(tmp_path):
    write(
        tmp_path,
        {
            "cc-s0": {"iou": 0.5, "adjacency": 0.2, "tokens_per_turn": 20.0},
            "dc-s0": {"iou": 0.7, "adjacency": 0.1, "turns": 3.0},
        },
    )
    figures = read_figures(SUITE, tmp_path)
    assert [figures.best(column) for column in range(4)] == [{"dc"}, {"cc"}, {"dc"}, {"dc"}]


def test_means_that_look_alike_are_both_best(tmp_path):
    write(
        tmp_path,
        {
            "raw-s0": {"iou": 0.4, "adjacency": 0.2},
            "cc-s0": {"iou": 0.5, "adjacency": 0.2},
            "dc-s0": {"iou": 0.5 + 1e-9, "adjacency": 0.2},
        },
    )
    figures = read_figures(SUITE, tmp_path)
    assert figures.best(2) == {"cc", "dc"}
    assert figures.best(3) == set()


def test_several_seeds_give_a_mean_and_an_interval(tmp_path):
    runs = {f"cc-s{n}": {"iou": iou, "adjacency": 0.0} for n, iou in enumerate((0.2, 0.4, 0.9))}
    write(tmp_path, runs)
    value = read_figures(SUITE, tmp_path).values["cc"][2]
    assert abs(value.mean - 50) < 1e-9
    # Student's quantile 4.3027 times the standard error of 20, 40, 90
    assert value.seeds == 3
    assert (value.low, value.high) == pytest.approx((50 - 89.57, 50 + 89.57), abs=0.01)


def test_equal_runs_of_a_row_that_was_not_trained_are_one_seed_and_a_note_says_so(tmp_path):
    write(tmp_path, {f"cc-s{n}": {"iou": 0.4, "adjacency": 0.0} for n in range(3)})
    for n in range(3):
        path = tmp_path / "walls" / "runs" / f"cc-s{n}" / "run.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"updates": 0}))
    figures = read_figures(SUITE, tmp_path)
    value = figures.values["cc"][2]
    assert (value.seeds, value.low) == (1, None)
    assert (
        "Walls, CC: the row was not trained, and its 3 runs have equal evaluations: "
        "they count as one seed"
    ) in figures.notes


@pytest.mark.parametrize(
    ("runs", "note"),
    [
        ({}, "Walls, CC: small/walls has no entry 'cc' in compare.algorithms"),
        ({"cc-s0": "ValueError: too big\n"}, "Walls, CC: run failed: ValueError: too big"),
        ({"cc-s0": "loading\n"}, "Walls, CC: not run yet"),
        ({"cc-s0": {"iou": 0.5}}, "Walls, CC: its evaluation gave no finite 'adjacency'"),
        (
            {"cc-s0": {"iou": 0.5, "adjacency": 0.1}, "cc-s1": "error: no space\n"},
            "Walls, CC: 1 of 2 seeds; cc-s1: run failed: error: no space",
        ),
    ],
)
def test_what_is_missing_says_why(tmp_path, runs, note):
    write(tmp_path, runs)
    assert note in read_figures(SUITE, tmp_path).notes


def test_a_table_of_unequal_steps_says_so(tmp_path):
    write(tmp_path, {"raw-s0": {"iou": 0.1}, "cc-s0": {"iou": 0.5}, "dc-s0": {"iou": 0.25}})
    for label, steps in (("cc", 320), ("dc", 1360)):
        path = tmp_path / "walls" / "runs" / f"{label}-s0" / "metrics.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        lines[-1]["environment_steps"] = steps
        fabricated.write_jsonl(path, lines)
    assert read_figures(SUITE, tmp_path).notes[-1] == (
        "Walls: The final values are neither compared at equal environment steps nor interpolated; "
        "the fewest steps are those of CC, the most those of DC"
    )


def test_the_markdown_has_a_row_for_each_method_and_numbers_its_notes(tmp_path):
    write(tmp_path, {"raw-s0": {"iou": 0.25, "adjacency": 0.5}, "cc-s0": {"iou": 0.5}})
    write_suite_report(SUITE, tmp_path, "colearn compare board")
    lines = (tmp_path / "board.md").read_text().splitlines()
    assert "| | Walls Time | Walls Cost | Walls IoU | Walls Adj |" in lines
    assert "| Raw | 2 | 30 | 25 | 50 |" in lines
    assert "| CC | 2 | 30 | **50** | - (1) |" in lines
    assert "(1) Walls, CC: its evaluation gave no finite 'adjacency'" in lines


def test_the_summary_says_what_its_columns_are(tmp_path):
    write(tmp_path, {"cc-s0": {"iou": 0.5, "adjacency": 0.1}})
    write_suite_report(SUITE, tmp_path, None)
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert [c["unit"] for c in summary["columns"]] == [
        "seconds per episode",
        "tokens per agent and turn",
        "iou times 100",
        "adjacency times 100",
    ]
    assert summary["figures"]["cc"][2] == {"mean": 50.0, "low": None, "high": None, "seeds": 1}
    assert summary["figures"]["raw"] == [None] * 4


def test_percent_is_said_where_all_metrics_are_in_it(tmp_path):
    write(tmp_path, {"cc-s0": {"iou": 0.75, "adjacency": 0.125}})
    write_suite_report(SUITE, tmp_path, None)
    assert "All else in percent, after training." in (tmp_path / "board.md").read_text()
    plain = SUITE.model_dump()
    del plain["columns"]["walls"]["metrics"][0]["scale"]
    write_suite_report(SuiteSettings.model_validate(plain), tmp_path, None)
    told = (tmp_path / "board.md").read_text()
    assert "percent" not in told
    assert "All else in the units that summary.json says, after training." in told
    del plain["columns"]["walls"]["metrics"][1]["scale"]
    write_suite_report(SuiteSettings.model_validate(plain), tmp_path, None)
    assert "All else after training." in (tmp_path / "board.md").read_text()
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert [column["unit"] for column in summary["columns"][2:]] == ["iou", "adjacency"]
    assert summary["figures"]["cc"][2]["mean"] == 0.75


def test_names_in_brackets_are_printed_as_they_are(tmp_path):
    write(tmp_path, {"cc-s0": {"iou": 0.75, "adjacency": 0.125}})
    odd = SUITE.model_dump() | {"rows": {"cc": "CC [red] [/none]"}}
    odd["columns"]["walls"]["title"] = "Walls [/none]"
    console = Terminal(file=io.StringIO(), width=200)
    print_suite_table(SuiteSettings.model_validate(odd), tmp_path, console)
    told = console.file.getvalue()
    assert "CC [red] [/none]" in told and "Walls [/none]" in told
