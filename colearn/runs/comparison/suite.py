"""Suites of comparisons on several tasks, with one pool of workers and one table."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from colearn.config import Config, SuiteSettings, load_config
from colearn.errors import CheckpointError, ConfigError
from colearn.runs.record import ComparisonFolder, RunFolder, SuiteFolder
from colearn.runs.record.place import named_folder
from colearn.runs.report import write_report
from colearn.runs.report.suite_report import print_suite_table, write_suite_report
from colearn.text.terminal import Terminal

from .api import claimed, execute
from .launch import launch_jobs, raise_failures
from .plan import Plan, make_plan


def compare_suite(
    suite: SuiteSettings,
    out: str | Path,
    *,
    command_line: str | None = None,
    console: Terminal | None = None,
) -> Path:
    """Run every comparison of the suite into `out/TASK`; return the path of index.html.

    Finished runs are kept, and unfinished runs are resumed. The arguments are as for `compare`. If
    runs fail, the table, with the reason for each missing run, is written and shown on `console`
    before the error is raised. Errors: ConfigError before anything runs; CheckpointError if `out`
    contains something else; ColearnError naming the first failed run, its log and its last error
    line.
    """
    folder = named_folder(out)
    plans = plan_suite(suite)
    if RunFolder(folder).status != "not started" or ComparisonFolder(folder).exists():
        raise CheckpointError(
            f"{folder} holds a run or a single comparison; give another --out or delete it"
        )
    console = console or Terminal()
    with claimed(plans, folder, command_line) as jobs:
        suite = _with_earlier(suite, SuiteFolder(folder))
        SuiteFolder(folder).write(suite, command_line)
        make = partial(launch_jobs, workers=suite.workers)
        failures = execute(jobs, make, console)
        index = report_suite(folder)
        print_suite_table(suite, folder, console)
    raise_failures(failures, len(jobs))
    return index


def _with_earlier(suite: SuiteSettings, folder: SuiteFolder) -> SuiteSettings:
    """Returns the suite extended by the tasks and rows that the folder already contains, so that
    the report includes them."""
    if not folder.exists():
        return suite
    before = folder.settings()
    known = {**before.configs, **suite.configs}
    tasks = tuple(task for task in suite.sizes[suite.size] if task in known)
    return suite.model_copy(update={"tasks": tasks, "rows": {**before.rows, **suite.rows}})


def report_suite(folder: str | Path) -> Path:
    """Write the reports and the table of a suite's folder from the finished runs.

    Returns the path of index.html.

    Errors: CheckpointError if no run is finished or a file cannot be read.
    """
    suite_folder = SuiteFolder(Path(folder))
    suite = suite_folder.settings()
    reported = [task for task in suite.configs if _any_finished(suite_folder.comparison(task))]
    if not reported:
        raise CheckpointError(f"{folder}: no finished run to report")
    for task in reported:
        write_report(suite_folder.comparison(task).path)
    return write_suite_report(suite, suite_folder.path, suite_folder.record().command)


def is_suite_folder(folder: str | Path) -> bool:
    """Whether the folder was written by `compare_suite`."""
    return SuiteFolder(Path(folder)).exists()


def plan_suite(suite: SuiteSettings) -> dict[str, Plan]:
    """Plan every task's comparison, by task.

    Errors: ConfigError naming the task's config and the key.
    """
    plans: dict[str, Plan] = {}
    for task, name in suite.configs.items():
        try:
            config = suite_config(suite, name)
            rows = [label for label in suite.rows if label in config.compare.algorithms]
            if not rows:
                raise ConfigError(
                    "compare.algorithms: has none of the suite's rows; add them there"
                )
            plans[task] = make_plan(config, rows)
        except ConfigError as error:
            raise ConfigError(f"{name}: {error}") from None
    return plans


def suite_config(suite: SuiteSettings, name: str) -> Config:
    """Returns a config of the suite with the overrides in `each` and the suite's seeds."""
    config = load_config(name, suite.overrides)
    if suite.seeds is None:
        return config
    comparison = config.compare.model_copy(update={"seeds": suite.seeds})
    return config.model_copy(update={"compare": comparison})


def _any_finished(folder: ComparisonFolder) -> bool:
    return any(run.status == "finished" for run in folder.runs_on_disk())
