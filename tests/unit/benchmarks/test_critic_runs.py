"""Runs that the benchmarks of given critics keep: a finished one is kept, one cut off is not."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
import _critic_runs
from _critic_runs import explained, finished

from colearn import __version__
from colearn.runs.record import RunFolder
from colearn.runs.record.fields import Line, RunRecord

SETTINGS = {
    "task": {"name": "quickstart"},
    "algorithm": {"name": "mareinforce"},
    "models": {"*": {"path": "embedded"}},
}
COSTS = {"generated_tokens": 8, "updates": 1, "wall_seconds": 1.0}
PROGRESS = {"iterations": 1, "environment_steps": 4, "joint_actions": 4, "rollouts": 4, **COSTS}


def write(folder, status, *explained):
    """A run's folder; `explained`: a metric of its updates, in their order."""
    folder.mkdir(parents=True)
    (folder / "config.yaml").touch()
    record = RunRecord(
        **{"status": status, "algorithm": "mareinforce", "task": "quickstart", "seed": 0},
        **{
            "agents": ("ann",),
            "models": {},
            "parameters": {},
            "version": __version__,
            "started": "",
        },
        **{"peak_memory_bytes": 0, "first": {}, "last": {}, **PROGRESS},
    )
    (folder / "run.json").write_text(record.model_dump_json())
    lines = [
        Line(kind="update", iteration=n, environment_steps=4, metrics={"told": one}, **COSTS)
        for n, one in enumerate(explained, start=1)
    ]
    (folder / "metrics.jsonl").write_text("".join(f"{one.model_dump_json()}\n" for one in lines))


@pytest.fixture
def made(monkeypatch):
    """The folders in which a run was made."""
    folders = []

    class Made:
        def __init__(self, config, folder):
            self.folder = folder

        def run(self):
            write(self.folder, "finished")
            folders.append(self.folder)

    monkeypatch.setattr(_critic_runs, "Experiment", Made)
    return folders


def test_a_missing_run_is_made(made, tmp_path):
    assert finished(tmp_path / "run", SETTINGS).status == "finished"
    assert made == [tmp_path / "run"]


def test_a_finished_run_is_kept(made, tmp_path):
    write(tmp_path / "run", "finished")
    finished(tmp_path / "run", SETTINGS)
    assert made == []


def test_a_run_that_was_cut_off_is_made_anew_in_an_empty_folder(made, tmp_path):
    write(tmp_path / "run", "running")
    (tmp_path / "run" / "trees.jsonl").touch()
    assert finished(tmp_path / "run", SETTINGS).status == "finished"
    assert not (tmp_path / "run" / "trees.jsonl").exists()


def test_the_first_five_values_and_the_mean_of_the_later_half_are_told(tmp_path):
    write(tmp_path / "run", "finished", 0.0, 0.1, None, 0.2, 0.3, 0.4, 0.5)
    told = explained(RunFolder(tmp_path / "run"), "worth", "told")
    assert told == {"worth_first": [0.0, 0.1, 0.2, 0.3, 0.4], "worth_late": 0.4}


def test_a_run_without_the_metric_has_no_mean_of_it(tmp_path):
    write(tmp_path / "run", "finished", 0.5)
    assert explained(RunFolder(tmp_path / "run"), "none", "other") == {
        "none_first": [],
        "none_late": None,
    }
