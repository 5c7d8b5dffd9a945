"""Launching a comparison with a stand-in program for the runs: faults, resuming, whose folder."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import fabricated_runs as fabricated
import pytest
import yaml
from fabricated_config import comparison_config as config
from fabricated_config import register

from colearn.config import Config, EvaluationSettings
from colearn.errors import CheckpointError, ColearnError, ConfigError
from colearn.runs.comparison.api import compare
from colearn.runs.comparison.claim import claim
from colearn.runs.comparison.launch import Failure, launch_jobs, launched_runs
from colearn.runs.comparison.plan import Plan, make_plan
from colearn.runs.record import ComparisonFolder
from colearn.runs.record.place import held_folder
from colearn.runs.record.tail import Status
from colearn.runs.report import write_report
from colearn.runs.report.source import read_source
from colearn.text.terminal import Terminal


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch, no_figures: None) -> None:
    register(monkeypatch)
    fabricated.make_runs(monkeypatch)


def run(settings: Config, out: Path) -> Path:
    return compare(settings, out, console=Terminal(file=io.StringIO()))


def launch(plan: Plan, out: Path, watcher: Silent, **more: Any) -> tuple[Failure, ...]:
    """All runs of a plan, by its own number of workers."""
    jobs = launched_runs(plan, out)
    return launch_jobs(jobs, watcher, workers=plan.config.compare.workers, **more)


class Silent:
    """A watcher that remembers what it was told, and may interrupt."""

    def __init__(self, interrupt: Any = None) -> None:
        self.told: list[tuple[str, str]] = []
        self.interrupt = interrupt

    def started(self, name: str, how: str) -> None:
        self.told.append((name, how))

    def noted(self, name: str, text: str) -> None:
        self.told.append((name, text))

    def advanced(self, name: str, status: Status) -> None:
        if self.interrupt is not None:
            self.interrupt()

    def ended(self, name: str, outcome: str) -> None:
        self.told.append((name, outcome))


def test_a_comparison_runs_and_reports(tmp_path):
    report = run(config(), tmp_path)
    assert report == tmp_path / "report.html"
    for name in ("summary.json", "table.md", "report.html"):
        assert (tmp_path / name).stat().st_size > 0
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert [r["algorithm"] for r in summary["runs"]] == ["collm_cc", "magrpo"] * 2
    assert summary["missing"] == []
    log = (tmp_path / "runs" / "magrpo-s1" / "log.txt").read_text()
    assert log == "making magrpo 1, resume False\n"
    made = yaml.safe_load((tmp_path / "configs" / "magrpo-s1.yaml").read_text())
    assert made["run"]["seed"] == 1


def test_threads_are_the_cores_divided_among_the_workers(tmp_path, monkeypatch):
    monkeypatch.setattr("colearn.runs.comparison.launch._cores", lambda: 5)
    fabricated.make_runs(monkeypatch, "sh", "-c", "echo $OMP_NUM_THREADS $MKL_NUM_THREADS; false")
    launch(make_plan(config(seeds=(0,))), tmp_path, Silent(), poll_seconds=0.01)
    logs = sorted(tmp_path.rglob("log.txt"))
    assert [log.read_text() for log in logs] == ["2 2\n"] * 2


def test_a_crashing_run_leaves_the_others_and_is_named(tmp_path):
    (tmp_path / "fault").write_text("crash magrpo-s0")
    with pytest.raises(ColearnError) as caught:
        run(config(seeds=(0,)), tmp_path)
    message = str(caught.value)
    assert "1 of 2 runs failed: magrpo-s0: RuntimeError: the batch is not finite" in message
    assert str(tmp_path / "runs" / "magrpo-s0" / "log.txt") in message
    assert "\n" not in message
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert len(summary["runs"]) == 1
    assert summary["missing"] == [
        {"run": "magrpo-s0", "status": "not started", "environment_steps": 0}
    ]
    assert "magrpo-s0" in (tmp_path / "report.html").read_text()


def test_an_interrupted_run_continues_and_finished_ones_are_not_redone(tmp_path):
    (tmp_path / "fault").write_text("die collm_cc-s0")
    with pytest.raises(ColearnError, match="collm_cc-s0: killed by SIGKILL"):
        run(config(seeds=(0,)), tmp_path)
    finished = tmp_path / "runs" / "magrpo-s0" / "run.json"
    before = finished.stat().st_mtime_ns
    (tmp_path / "fault").unlink()
    run(config(seeds=(0,)), tmp_path)
    assert finished.stat().st_mtime_ns == before
    log = (tmp_path / "runs" / "collm_cc-s0" / "log.txt").read_text()
    assert log == "making collm_cc 0, resume False\nmaking collm_cc 0, resume True\n"
    assert json.loads((tmp_path / "summary.json").read_text())["missing"] == []


def test_if_every_run_fails_there_is_no_report(tmp_path):
    (tmp_path / "fault").write_text("crash collm_cc-s0")
    with pytest.raises(ColearnError, match="1 of 1 runs failed"):
        run(config(seeds=(0,), collm_cc={}), tmp_path)
    assert not (tmp_path / "report.html").exists()


def test_a_run_that_ends_without_finishing_is_a_failure(tmp_path, monkeypatch):
    fabricated.make_runs(monkeypatch, "true")
    plan = make_plan(config(seeds=(0,), collm_cc={}))
    (failure,) = launch(plan, tmp_path, Silent(), poll_seconds=0.01)
    assert failure.reason == "ended without finishing"


def wait_for_child(tmp_path: Path) -> int:
    return int((tmp_path / "runs" / "collm_cc-s0" / "hanging").read_text())


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_an_interrupt_terminates_the_runs(tmp_path):
    (tmp_path / "fault").write_text("hang")
    plan = make_plan(config(seeds=(0,), collm_cc={}))

    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        launch(plan, tmp_path, Silent(interrupt), poll_seconds=0.02)
    assert gone(wait_for_child(tmp_path))


def test_termination_of_the_comparison_terminates_the_runs(tmp_path):
    (tmp_path / "fault").write_text("hang")
    plan = make_plan(config(seeds=(0,), collm_cc={}))
    hanging = tmp_path / "runs" / "collm_cc-s0" / "hanging"
    done = threading.Event()

    def terminate() -> None:
        while not (hanging.exists() and hanging.read_text()) and not done.wait(0.02):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    killer = threading.Thread(target=terminate)
    handler = signal.getsignal(signal.SIGTERM)
    killer.start()
    with pytest.raises(KeyboardInterrupt):
        launch(plan, tmp_path, Silent(), poll_seconds=0.02)
    done.set()
    killer.join()
    assert gone(wait_for_child(tmp_path))
    assert signal.getsignal(signal.SIGTERM) == handler


@pytest.mark.parametrize(
    ("algorithms", "difference"),
    [
        ({"magrpo": {"train.epochs": 3}}, ""),
        (
            {"collm_cc": {}, "magrpo": {"train.epochs": 3}},
            "first difference: magrpo's train.epochs was 1, is 3",
        ),
    ],
)
def test_a_folder_with_another_comparison_is_refused(tmp_path, algorithms, difference):
    claim(make_plan(config(seeds=(0,))), tmp_path, None)
    with pytest.raises(
        CheckpointError, match=r"another comparison.*another --out or delete"
    ) as told:
        run(config(seeds=(0,), **algorithms), tmp_path)
    assert difference in str(told.value)


def test_a_comparison_is_extended_and_never_shortened(tmp_path):
    run(config(seeds=(0,), magrpo={}), tmp_path)
    longer = config(seeds=(0,), magrpo={}).model_dump(mode="json")
    longer["train"]["environment_steps"] = 500
    run(Config.model_validate(longer), tmp_path)
    log = (tmp_path / "runs" / "magrpo-s0" / "log.txt").read_text()
    assert log == "making magrpo 0, resume False\nmaking magrpo 0, resume True\n"
    shorter = {**longer, "train": {"environment_steps": 300}}
    with pytest.raises(
        ConfigError, match=r"300 is less than the 400 that the run in .*magrpo-s0 has made"
    ):
        run(Config.model_validate(shorter), tmp_path)


def test_it_says_from_where_a_run_goes_on(tmp_path):
    (tmp_path / "fault").write_text("die collm_cc-s0")
    settings = config(seeds=(0,), collm_cc={})
    with pytest.raises(ColearnError, match="killed by SIGKILL"):
        run(settings, tmp_path)
    for checkpoint, told in ((None, "restarted: no checkpoint"), (7, "resumed at iteration 7")):
        if checkpoint is not None:
            folder = tmp_path / "runs" / "collm_cc-s0" / "checkpoints"
            (folder / f"step-{checkpoint}").mkdir(parents=True)
        watcher = Silent()
        launch(make_plan(settings), tmp_path, watcher)
        assert watcher.told[0] == ("collm_cc-s0", told)


def test_two_comparisons_do_not_share_a_folder(tmp_path, monkeypatch):
    monkeypatch.setattr("colearn.runs.record.place._SECONDS", 0.0)
    with held_folder(tmp_path), pytest.raises(CheckpointError, match="another process is at work"):
        run(config(), tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"models": {"*": {"path": "./nowhere"}}}, r"models\.left\.path: no folder \./nowhere"),
        ({"critic": {"path": "./nowhere"}}, r"critic\.path: no folder \./nowhere"),
        ({"run": {"device": "cuda:9"}}, r"run\.device: no device cuda:9 on this machine"),
        ({"placement": {"critic": "cuda:9"}}, r"placement\.critic: no device cuda:9"),
    ],
)
def test_what_no_run_can_start_with_is_found_before_the_first_one(tmp_path, changes, message):
    settings = Config.model_validate({**config().model_dump(mode="json"), **changes})
    with pytest.raises(ConfigError, match=message):
        run(settings, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_folder_with_runs_of_unknown_origin_is_refused(tmp_path):
    fabricated.write_run(tmp_path / "single", "magrpo", 0)
    with pytest.raises(CheckpointError, match="holds a single run"):
        run(config(), tmp_path / "single")
    fabricated.write_comparison(tmp_path / "many", seeds=[0])
    (tmp_path / "many" / "compare.json").unlink()
    with pytest.raises(CheckpointError, match="no comparison here made"):
        run(config(), tmp_path / "many")


def test_more_seeds_extend_a_comparison(tmp_path):
    run(config(seeds=(0,), magrpo={}), tmp_path)
    run(config(seeds=(2,), magrpo={}), tmp_path)
    assert read_source(tmp_path).compared.seeds == [0, 2]
    assert len(read_source(tmp_path).runs) == 2


def test_a_single_run_and_a_bare_folder_can_be_reported(tmp_path):
    fabricated.write_run(tmp_path / "single", "magrpo", 3)
    write_report(tmp_path / "single")
    text = (tmp_path / "single" / "table.md").read_text()
    assert "one seed, so no interval" in text
    with pytest.raises(CheckpointError, match="no finished run"):
        write_report(tmp_path)


@pytest.mark.parametrize(("seeds", "shown"), [([0], r"\(one seed\)"), ([0, 1], r"\[-?\d+\.\d+, ")])
def test_the_terminal_shows_an_interval_or_says_that_one_seed_has_none(
    tmp_path, capsys, seeds, shown
):
    from colearn.entry.cli.compare import _show

    fabricated.write_comparison(tmp_path, seeds, ("magrpo",))
    write_report(tmp_path)
    _show(tmp_path)
    assert re.search(shown, capsys.readouterr().out)


def test_an_algorithm_is_added_to_a_comparison(tmp_path):
    claim(make_plan(config(), ["magrpo"]), tmp_path, None)
    claim(make_plan(config(), ["collm_cc"]), tmp_path, None)
    elsewhere = make_plan(config(seeds=(0,)), ["magrpo"])
    other = elsewhere.config.model_copy(update={"evaluation": EvaluationSettings(every=3)})
    with pytest.raises(CheckpointError, match=r"another comparison"):
        claim(replace(elsewhere, config=other), tmp_path, None)
    record = ComparisonFolder(tmp_path).record()
    assert record.algorithms == ("magrpo", "collm_cc")
    assert {entry.run for entry in record.runs} == {
        f"{label}-s{seed}" for label in record.algorithms for seed in (0, 1)
    }
