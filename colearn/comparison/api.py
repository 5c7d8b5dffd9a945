"""`compare`: runs a comparison from a config and writes its report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console

from colearn.config import Config
from colearn.record.place import check_place, held_folder, named_folder

from .check import check_plans, tell_large_iterations
from .claim import check_claim, claim
from .launch import Command, Failure, early_forks, launch_jobs, launched_runs, raise_failures
from .plan import Plan, make_plan
from .progress import Watcher, watch

Make = Callable[[Plan, Path, Watcher], tuple[Failure, ...]]
"""A function that executes the unfinished runs of a plan in a folder and returns the failures."""


def compare(
    config: Config,
    out: str | Path,
    *,
    algorithms: Sequence[str] | None = None,
    command_line: str | None = None,
    console: Console | None = None,
    command: Command | None = None,
    make: Make | None = None,
) -> Path:
    """Run every algorithm of `config.compare` with every seed, and write the runs to `out`; return
    the path of report.html.

    algorithms: labels of the algorithms to run; by default all. command_line: the command that the
    report shows. command: a program that executes each run, instead of `colearn train`. make: a
    function that executes all runs, instead of processes. Finished runs in `out` are kept, and
    unfinished runs are resumed. If runs fail, the report on the finished runs is written before the
    error is raised. Errors: ConfigError before anything runs; CheckpointError if `out` contains
    something else; ColearnError naming the first failed run, its log and its last error line.
    """
    folder = named_folder(out)
    with early_forks(config, algorithms, command, needed=make is None) as forks:
        from colearn.report import write_report  # imports beside the fork server

        plan = make_plan(config, algorithms)
        check_place(folder)
        check_claim(plan, folder)
        check_plans([plan])
        tell_large_iterations(plan)
        with held_folder(folder):
            claim(plan, folder, command_line)
            jobs = launched_runs(plan, folder)
            with watch(console or Console(), {job.name: job.goal for job in jobs}) as watcher:
                if make is None:
                    workers = config.compare.workers
                    failures = launch_jobs(
                        jobs, watcher, workers=workers, command=command, forks=forks
                    )
                else:
                    failures = make(plan, folder, watcher)
            if len(failures) == len(plan.runs):
                raise_failures(failures, len(plan.runs))
            report = write_report(folder)
    raise_failures(failures, len(plan.runs))
    return report
