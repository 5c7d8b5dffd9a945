"""`compare`: runs a comparison from a config and writes its report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

from colearn.config import Config
from colearn.runs.record.place import check_place, held_folder, named_folder
from colearn.text.terminal import Terminal

from .check import check_plans, tell_large_iterations
from .claim import check_claim, claim
from .launch import (
    Failure,
    LaunchedRun,
    early_forks,
    launch_jobs,
    launched_runs,
    raise_failures,
)
from .plan import Plan, make_plan
from .progress import Watcher, watch
from .seeds import tell_seeds

Make = Callable[[Sequence[LaunchedRun], Watcher], tuple[Failure, ...]]
"""A function that executes the unfinished ones of the given runs and returns the failures."""


def compare(
    config: Config,
    out: str | Path,
    *,
    algorithms: Sequence[str] | None = None,
    command_line: str | None = None,
    console: Terminal | None = None,
    make: Make | None = None,
) -> Path:
    """Run every algorithm of `config.compare` with every seed, and write the runs to `out`; return
    the path of report.html.

    algorithms: labels of the algorithms to run; by default all. command_line: the command that the
    report shows. make: a function that executes all runs, instead of processes. Finished runs in
    `out` are kept, and unfinished runs are resumed. If runs fail, the report on the finished runs
    is written before the error is raised.

    Errors: ConfigError before anything runs; CheckpointError if `out` contains something else;
    ColearnError naming the first failed run, its log and its last error line.
    """
    folder = named_folder(out)
    with early_forks(config, algorithms) if make is None else nullcontext() as forks:
        from colearn.runs.report import write_report  # imports beside the fork server

        plan = make_plan(config, algorithms)
        workers = config.compare.workers
        make = make or partial(launch_jobs, workers=workers, forks=forks)
        with claimed({"": plan}, folder, command_line) as jobs:
            failures = execute(jobs, make, console or Terminal())
            report = write_report(folder)
    raise_failures(failures, len(jobs))
    return report


@contextmanager
def claimed(
    plans: Mapping[str, Plan], folder: Path, command_line: str | None
) -> Iterator[list[LaunchedRun]]:
    """Check the plans and record them in `folder`, which is locked in the block; returns their
    runs. plans: by the place of a comparison in `folder`, which is a task's name in a suite, or ""
    for the folder itself.

    Errors: as for `compare`, before anything runs.
    """
    check_place(folder)
    for task, plan in plans.items():
        check_claim(plan, folder / task)
    check_plans(plans.values())
    for task, plan in plans.items():
        tell_large_iterations(plan, task)
        tell_seeds(plan, folder / task)
    with held_folder(folder):
        for task, plan in plans.items():
            claim(plan, folder / task, command_line)
        yield [
            replace(job, name=f"{task}/{job.name}".lstrip("/"))
            for task, plan in plans.items()
            for job in launched_runs(plan, folder / task)
        ]


def execute(jobs: Sequence[LaunchedRun], make: Make, console: Terminal) -> tuple[Failure, ...]:
    """Execute the runs and show their progress; returns the failures. Errors: ColearnError if all
    runs failed."""
    failures = make(jobs, watch(console, {job.name: job.goal for job in jobs}))
    if len(failures) == len(jobs):
        raise_failures(failures, len(jobs))
    return failures
