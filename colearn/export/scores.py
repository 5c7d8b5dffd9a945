"""What evaluation told of a run, and of the seeds beside it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from colearn.comparison.runs import Evaluation, read_object, read_run
from colearn.comparison.source import RECORD, read_source
from colearn.comparison.summary import Change, summarise
from colearn.errors import CheckpointError, ConfigError

from .trained import Trained


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """The run's evaluations before training and at the checkpoint, and the comparison's figures."""

    before: Evaluation
    after: Evaluation
    """The last one made at the checkpoint or before it."""
    seeds: list[int]
    """Finished runs of the same algorithm in the comparison; empty without one."""
    changes: dict[str, Change]
    """By metric, over those seeds, with 95% intervals; first to last evaluation of each run."""


def read_scores(trained: Trained, comparison: Path | None) -> Scores:
    """`comparison` None: the one in whose folder the run lies, if it does and has finished runs.

    Errors: ConfigError for a comparison without this run, CheckpointError for unreadable files.
    """
    evaluations = read_run(trained.folder).evaluations
    reached = [e for e in evaluations if e.iteration <= trained.progress.iteration]
    seeds, changes = _over_seeds(trained, comparison)
    return Scores(
        before=evaluations[0], after=(reached or evaluations)[-1], seeds=seeds, changes=changes
    )


def _over_seeds(trained: Trained, comparison: Path | None) -> tuple[list[int], dict[str, Change]]:
    folder = trained.folder.resolve().parent.parent if comparison is None else comparison
    if comparison is None and not (folder / RECORD).is_file():
        return [], {}
    if not (folder / RECORD).is_file():
        raise ConfigError(f"--comparison {folder}: no comparison here (no {RECORD})")
    label = _label(folder, trained.folder.resolve().name)
    if label is None and comparison is not None:
        raise ConfigError(f"--comparison {folder}: the run is none of its own; leave it out")
    if label is None:
        return [], {}
    try:
        found = summarise(read_source(folder)).algorithms.get(label)
    except CheckpointError:
        if comparison is not None:
            raise
        return [], {}  # none of its runs is finished yet
    return ([], {}) if found is None else (found.seeds, found.metrics)


def _label(folder: Path, run: str) -> str | None:
    for planned in read_object(folder / RECORD).get("runs", ()):
        if planned.get("run") == run:
            return str(planned["algorithm"])
    return None
