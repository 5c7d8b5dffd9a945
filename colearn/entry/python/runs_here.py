"""Executes the runs of a comparison one after the other in this process, which holds the program's
objects."""

from __future__ import annotations

from collections.abc import Sequence

from colearn.errors import ColearnError
from colearn.runs.comparison.launch import (
    Failure,
    LaunchedRun,
    already_finished,
    how_it_starts,
    not_made,
    write_config,
)
from colearn.runs.comparison.outside import check_files
from colearn.runs.comparison.progress import Watcher
from colearn.runs.record import Progress
from colearn.training.loop import Experiment, Report
from colearn.training.restarts import run_with_restarts


def make_here(jobs: Sequence[LaunchedRun], watcher: Watcher) -> tuple[Failure, ...]:
    """Execute every run that is not finished; a run that was already started is resumed. If a run
    fails, the other runs are still executed."""
    failures = []
    for job in jobs:
        if already_finished(job, watcher):
            continue
        folder, tail = job.folder, job.folder.tail(job.goal.metric)
        resume = folder.status != "not started"
        write_config(job)
        watcher.started(job.name, how_it_starts(folder) if resume else "started")

        def started(_: Experiment, name: str = job.name, tail=tail) -> Report:  # type: ignore[no-untyped-def]
            def report(progress: Progress, metrics: dict[str, float]) -> None:
                if tail.advance():
                    watcher.advanced(name, tail.status)

            return report

        try:
            check_files([job.resolved], job.out)
            record = run_with_restarts(job.run.config, folder.path, resume=resume, started=started)
        except ColearnError as error:
            failures.append(not_made(job, error, watcher))
        else:
            watcher.ended(job.name, record.ending)
    return tuple(failures)
