"""A suite: its settings, and that its comparisons run from one pool into one table."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import fabricated_runs as fabricated
import pytest
import yaml
from fabricated_config import register

from colearn.config import SuiteSettings, is_suite, load_config, load_suite
from colearn.errors import CheckpointError, ColearnError, ConfigError
from colearn.runs.comparison.claim import claim
from colearn.runs.comparison.suite import compare_suite, plan_suite
from colearn.text.terminal import Terminal


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch, no_figures: None) -> None:
    register(monkeypatch)
    fabricated.make_runs(monkeypatch)


def settings(folder: Path, **changes: Any) -> dict[str, Any]:
    """A suite of two tasks; the second one's config lacks a row of the first one's."""
    for name, labels in (("one", ("collm_cc", "magrpo")), ("two", ("collm_cc",))):
        entries = {label: {} for label in labels}
        section = {"algorithms": entries, "seeds": [0]}
        (folder / f"{name}.yaml").write_text(
            yaml.safe_dump(fabricated.CONFIG | {"compare": section})
        )
    configs = {name: str(folder / f"{name}.yaml") for name in ("one", "two")}
    return {
        "name": "board",
        "title": "A board",
        "size": "small",
        "sizes": {"small": configs, "large": {"one": configs["one"]}},
        "rows": {"collm_cc": "CC", "magrpo": "Group"},
        "columns": {
            "two": {"title": "Two", "metrics": [{"metric": "iou", "title": "IoU"}]},
            "one": {
                "title": "One",
                "metrics": [{"metric": "adjacency", "title": "Adj", "scale": 1, "best": "low"}],
            },
        },
        **changes,
    }


def suite(folder: Path, **changes: Any) -> SuiteSettings:
    return load_suite(settings(folder, **changes))


def run(made: SuiteSettings, out: Path, width: int = 160) -> str:
    """What a terminal of that width shows."""
    shown = io.StringIO()
    console = Terminal(file=shown, width=width)
    compare_suite(made, out, console=console)
    return shown.getvalue()


def test_the_tasks_come_in_the_order_of_the_columns(tmp_path):
    assert list(suite(tmp_path).configs) == ["two", "one"]
    assert list(load_suite(settings(tmp_path), ["size=large"]).configs) == ["one"]


def test_the_only_size_needs_no_choice(tmp_path):
    given = settings(tmp_path)
    del given["size"], given["sizes"]["large"]
    assert load_suite(given).size == "small"


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("size=huge", "size must be one of small, large, got 'huge'"),
        ("sizes.small.three=three", "columns lacks 'three'"),
        ("sizes.small={../out: one}", "sizes.small: '../out' cannot be a key, a folder"),
        ("colums=1", "colums: unknown key; did you mean 'columns'"),
        ("workers=0", "workers: .*greater than or equal to 1"),
    ],
)
def test_a_mistake_in_a_suite_is_one_line(tmp_path, override, message):
    with pytest.raises(ConfigError, match=message) as caught:
        load_suite(settings(tmp_path), [override])
    assert "\n" not in str(caught.value)


def test_one_task_of_a_suite_can_be_chosen(tmp_path):
    chosen = load_suite(settings(tmp_path), ["tasks=[one]"])
    assert list(plan_suite(chosen)) == list(chosen.configs) == ["one"]
    shown = run(chosen, tmp_path / "out")
    assert "Adj" in shown and "IoU" not in shown
    assert not (tmp_path / "out" / "two").exists()


@pytest.mark.parametrize(
    ("tasks", "told"),
    [
        ("[onne]", "tasks: sizes.small has no 'onne'; did you mean 'one'"),
        ("[]", "tasks is empty; name one"),
        ("one", "tasks: must be a list, got 'one'; write \\[one\\]"),
    ],
)
def test_a_task_that_a_suite_has_not_is_one_line(tmp_path, tasks, told):
    with pytest.raises(ConfigError, match=told):
        load_suite(settings(tmp_path), [f"tasks={tasks}"])


def test_settings_of_each_reach_every_comparison(tmp_path):
    made = load_suite(
        settings(tmp_path), ["each.evaluation.every=7", "each.models.*.dtype=bfloat16"]
    )
    for plan in plan_suite(made).values():
        assert plan.runs[0].config.evaluation.every == 7
        assert plan.runs[0].config.models["*"].dtype == "bfloat16"


def test_a_mistake_in_each_names_the_config(tmp_path):
    made = load_suite(settings(tmp_path), ["each.evaluation.evry=7"])
    with pytest.raises(ConfigError, match=r"two\.yaml: evaluation\.evry: unknown key"):
        plan_suite(made)


def test_seeds_of_the_suite_go_over_those_of_the_configs(tmp_path):
    plans = plan_suite(suite(tmp_path, seeds=[3, 4]))
    assert [run.name for run in plans["two"].runs] == ["collm_cc-s3", "collm_cc-s4"]


def test_only_the_rows_of_the_suite_are_run(tmp_path):
    plans = plan_suite(suite(tmp_path, rows={"collm_cc": "CC"}))
    assert plans["one"].algorithms == ("collm_cc",)


def test_a_setting_of_a_row_that_is_left_out_is_no_mistake(tmp_path):
    each = {"algorithm": {"critic_lag": 3}}
    sizes = {"small": {"one": str(tmp_path / "one.yaml")}}
    made = suite(tmp_path, rows={"magrpo": "Group"}, each=each, sizes=sizes)
    (run,) = plan_suite(made)["one"].runs
    assert "critic_lag" not in run.config.algorithm.settings


def test_a_suite_is_told_from_a_config(tmp_path):
    path = tmp_path / "board.yaml"
    path.write_text(yaml.safe_dump(settings(tmp_path)))
    assert is_suite(path) and not is_suite(tmp_path / "one.yaml")
    with pytest.raises(ConfigError, match="is a suite of comparisons; run it with colearn compare"):
        load_config(path)


def test_a_suite_runs_all_comparisons_and_reports_each(tmp_path):
    out = tmp_path / "out"
    wide = run(suite(tmp_path), out)
    assert sorted(path.name for path in out.glob("*/runs/*")) == [
        "collm_cc-s0",
        "collm_cc-s0",
        "magrpo-s0",
    ]
    for name in ("two/report.html", "one/report.html", "board.md", "summary.json", "index.html"):
        assert (out / name).stat().st_size > 0
    page = (out / "index.html").read_text()
    assert 'href="one/report.html"' in page and 'href="two/report.html"' in page
    linked = re.findall('href="([^"]+)"', page)
    assert linked and all((out / path).is_file() for path in linked)
    board = (out / "board.md").read_text()
    (out / "board.md").unlink()
    narrow = run(suite(tmp_path), out, width=60)
    assert (out / "board.md").read_text() == board, "written again from the folder"
    assert wide.count("┏") == 1 and narrow.count("┏") == 2, "a table for each task"


def test_one_task_in_a_folder_that_holds_more_leaves_the_others_in_the_report(tmp_path):
    out = tmp_path / "out"
    run(suite(tmp_path), out)
    finished = {path: path.stat().st_mtime_ns for path in out.glob("*/runs/*/run.json")}
    told = run(suite(tmp_path, tasks=["one"], rows={"magrpo": "Group"}, seeds=[0, 1]), out)
    assert "one/magrpo-s0: already finished" in told and "one/magrpo-s1: finished" in told
    assert len(finished) == 3
    assert finished == {path: path.stat().st_mtime_ns for path in finished}
    board = (out / "board.md").read_text()
    assert "| CC |" in board and "Two" in board and "Group" in board
    assert 'href="two/report.html"' in (out / "index.html").read_text()


def test_another_comparison_in_the_folder_of_a_task_is_refused(tmp_path):
    for task, plan in plan_suite(suite(tmp_path)).items():
        claim(plan, tmp_path / "out" / task, None)
    changed = suite(tmp_path, each={"train": {"epochs": 3}})
    with pytest.raises(CheckpointError, match=r"two holds another comparison"):
        run(changed, tmp_path / "out")


def test_a_failed_run_is_a_note_in_the_table_and_then_an_error(tmp_path):
    out = tmp_path / "out"
    (out / "one").mkdir(parents=True)
    (out / "one" / "fault").write_text("crash magrpo-s0")
    with pytest.raises(ColearnError, match="1 of 3 runs failed: one/magrpo-s0: RuntimeError"):
        run(suite(tmp_path), out)
    notes = json.loads((out / "summary.json").read_text())["notes"]
    assert notes[1] == "One, Group: run failed: RuntimeError: the batch is not finite"
