"""`colearn compare` and `colearn report`: compare algorithms over several seeds, on one task or on
a suite of tasks."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from colearn.errors import ConfigError, nearest
from colearn.text.masking import masked
from colearn.text.notes import note

from .options import ConfigName, Devices, Out, Sets, read_devices

if TYPE_CHECKING:
    from colearn.config import Config, SuiteSettings
    from colearn.estimate.machine import Machine
    from colearn.runs.comparison.plan import Plan


def compare(
    config: ConfigName,
    out: Out = Path("comparison"),
    algorithms: Annotated[
        list[str],
        typer.Option(help="Comma-separated names, repeatable; default: the config's."),
    ] = [],  # noqa: B006 - as for `sets`
    tasks: Annotated[
        list[str],
        typer.Option(
            help="Comma-separated tasks of a suite such as stronger_mas, repeatable; default: all."
        ),
    ] = [],  # noqa: B006 - as for `sets`
    seeds: Annotated[
        int | None, typer.Option(help="Number of seeds, from 0; default: the config's.")
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Runs side by side.")] = None,
    sets: Sets = [],  # noqa: B006 - typer reads the default, nobody changes it
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check everything, estimate memory and tokens, stop.")
    ] = False,
    devices: Devices = None,
) -> None:
    """Compare algorithms on one task, or on every task of a suite such as table1. To continue after
    an interruption, run the same command again."""
    from colearn.config import first_seeds, is_suite, load_config
    from colearn.runs.comparison.api import compare as run_comparison

    machine = read_devices(devices, dry_run)
    changes: dict[str, Any] = {}
    if seeds is not None:
        changes["seeds"] = first_seeds(seeds, "--seeds")
    if workers is not None:
        changes["workers"] = workers
    chosen = _names(algorithms) if algorithms else None
    if is_suite(config):
        if tasks:
            sets = [*sets, f"tasks=[{','.join(tasks)}]"]
        _run_suite(_suite(config, sets, chosen, changes), out, dry_run, machine)
        return
    if tasks:
        raise ConfigError(f"--tasks: {config} has one task; name a suite such as stronger_mas")
    settings = load_config(config, sets)
    _tell_kept(settings, chosen, sets)
    if changes:
        comparison = settings.compare.model_copy(update=changes)
        settings = settings.model_copy(update={"compare": comparison})
    if dry_run:
        from colearn.runs.comparison.plan import make_plan
        from colearn.runs.record.place import check_place

        check_place(out)
        _estimates(config, make_plan(settings, chosen), machine)
        return
    with _telling_how_to_continue():
        report_file = run_comparison(settings, out, algorithms=chosen, command_line=_command_line())
    _show(report_file.parent)
    print(f"report: {report_file}")


def report(
    folder: Annotated[
        Path, typer.Argument(help="The folder of a comparison, of a suite, or of one run.")
    ],
) -> None:
    """Rewrite report.html and the figures and tables beside it from finished runs."""
    from colearn.runs.comparison.suite import is_suite_folder, report_suite
    from colearn.runs.report import write_report

    if is_suite_folder(folder):
        page = report_suite(folder)
    else:
        page = write_report(folder)
        _show(page.parent)
    print(f"report: {page}")


def _tell_kept(settings: Config, chosen: Sequence[str] | None, sets: Sequence[str]) -> None:
    """Print which algorithms have a value of their own for a setting of the command line."""
    for key in dict.fromkeys(pair.partition("=")[0].strip() for pair in sets):
        labels = [
            label
            for label, overrides in settings.compare.algorithms.items()
            if (chosen is None or label in chosen)
            and any(f"{override}.".startswith(f"{key}.") for override in overrides)
        ]
        if labels:
            note(f"--set {key}: {', '.join(labels)} keep what compare.algorithms sets for them")


def _names(texts: Sequence[str]) -> list[str]:
    return [name.strip() for names in texts for name in names.split(",") if name.strip()]


def _suite(
    config: str, sets: Sequence[str], chosen: Sequence[str] | None, changes: Mapping[str, Any]
) -> SuiteSettings:
    from colearn.config import load_suite

    suite = load_suite(config, sets)
    for name in chosen or ():
        if name not in suite.rows:
            raise ConfigError(f"--algorithms: no row '{name}'; {nearest(name, suite.rows)}")
    rows = {name: title for name, title in suite.rows.items() if chosen is None or name in chosen}
    return suite.model_copy(update={**changes, "rows": rows})


def _run_suite(suite: SuiteSettings, out: Path, dry_run: bool, machine: Machine | None) -> None:
    from colearn.runs.comparison.suite import compare_suite, plan_suite
    from colearn.runs.record.place import check_place

    if dry_run:
        check_place(out)
        for task, plan in plan_suite(suite).items():
            _estimates(task, plan, machine)
        return
    with _telling_how_to_continue():
        index = compare_suite(suite, out, command_line=_command_line())
    print(f"report: {index}")


def _estimates(title: str, plan: Plan, machine: Machine | None) -> None:
    """Print the estimates of a dry run; writes no files. All seeds have the same needs."""
    from colearn.estimate import estimate
    from colearn.estimate.phases import Passes
    from colearn.estimate.table import comparison_table
    from colearn.runs.comparison.seeds import seeds_line
    from colearn.runs.over_seeds import can_differ
    from colearn.text.terminal import Terminal

    first = {run.algorithm: run.config for run in reversed(plan.runs)}
    passes = Passes()
    estimates = {
        label: estimate(first[label], machine=machine, rehearsed=passes)
        for label in plan.algorithms
    }
    console = Terminal()
    console.print(comparison_table(title, estimates), highlight=False)
    if len(plan.algorithms) > 1 or not can_differ(plan.seeds, plan.seeds):
        console.print(seeds_line(plan.seeds), highlight=False, soft_wrap=True)


@contextmanager
def _telling_how_to_continue() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        command = _command_line()
        print(f"interrupted; every run kept its state; continue with: {command}", file=sys.stderr)
        raise SystemExit(130) from None


def _command_line() -> str:
    return "colearn " + shlex.join(map(masked, sys.argv[1:]))


def _show(folder: Path) -> None:
    """Print the main numbers, the headline and the notes that it leaves out, without those on
    critics; table.md contains everything."""
    from rich.table import Table

    from colearn.runs.over_seeds import MeanEstimate
    from colearn.runs.report.show import show_over_seeds
    from colearn.text.terminal import Terminal

    summary = json.loads((folder / "summary.json").read_text())
    judged = summary["compared"]["headline"]["metric"]
    table = Table("algorithm", f"{judged} before", f"{judged} after", "s/run")
    for name, algorithm in summary["algorithms"].items():
        change = algorithm["metrics"][judged]
        seconds = [run["wall_seconds"] for run in summary["runs"] if run["algorithm"] == name]
        ends = (change[key] for key in ("first", "last"))
        cells = (show_over_seeds(end and MeanEstimate(**end)) for end in ends)
        table.add_row(name, *cells, f"{sum(seconds) / len(seconds):.0f}")
    console = Terminal()
    console.print(table)
    console.print(summary["headline"], highlight=False)
    critics = [one["critic"]["sentence"] for one in summary["algorithms"].values() if one["critic"]]
    for text in summary["notes"]:
        if text not in critics:
            console.print(f"- {text}", highlight=False)
