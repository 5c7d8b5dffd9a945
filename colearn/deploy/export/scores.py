"""Reads evaluation scores of a run, and of the other seeds in the run's comparison."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from colearn.errors import ConfigError
from colearn.runs.record import ComparisonFolder, Line, read_run
from colearn.runs.report.repeats import independent
from colearn.runs.report.summarise import change
from colearn.runs.report.summary import Change

from .run_reader import Trained


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """A run's evaluations before training and at the checkpoint, and its comparison's results."""

    before: Line
    after: Line
    """The last evaluation at or before the checkpoint."""
    seeds: list[int]
    """Seeds of the algorithm's finished runs in the comparison; empty without a comparison. As in
    the report, equal runs that were not trained count as one."""
    changes: dict[str, Change]
    """For each metric, the change from the first to the last evaluation of a run: mean over `seeds`
    and 95% interval."""


def read_scores(trained: Trained, comparison: Path | None) -> Scores:
    """Read the scores. If `comparison` is None, the comparison whose folder contains the run is
    used if that comparison has finished runs.

    Errors: ConfigError for a comparison without this run, CheckpointError for unreadable files.
    """
    evaluations = read_run(trained.folder).evaluations
    reached = [e for e in evaluations if e.iteration <= trained.progress.iteration]
    seeds, changes = _over_seeds(trained, comparison)
    return Scores(
        before=evaluations[0], after=(reached or evaluations)[-1], seeds=seeds, changes=changes
    )


def _over_seeds(trained: Trained, comparison: Path | None) -> tuple[list[int], dict[str, Change]]:
    run_path = trained.folder.path.resolve()
    folder = ComparisonFolder(run_path.parent.parent if comparison is None else comparison)
    if not folder.exists():
        if comparison is None:
            return [], {}
        raise ConfigError(f"--comparison {comparison}: no comparison here (no compare.json)")
    planned = folder.planned()
    label = next((label for label, run in planned if run.name == run_path.name), None)
    if label is None:
        if comparison is None:
            return [], {}
        raise ConfigError(f"--comparison {comparison}: the run is none of its own; leave it out")
    sibling_runs = [run for entry, run in planned if entry == label and run.status == "finished"]
    runs = independent([read_run(run, label) for run in sibling_runs])
    metrics = dict.fromkeys(name for run in runs for e in run.evaluations for name in e.metrics)
    return [run.seed for run in runs], {name: change(runs, name) for name in metrics}
