"""Computes the values of a suite's table: the response time, cost and metrics of each algorithm on
each task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from colearn.config import SuiteSettings
from colearn.runs.over_seeds import MeanEstimate, estimate
from colearn.runs.record import ComparisonFolder, Run, RunFolder, read_run
from colearn.runs.record.log import last_error

from .finding import final_steps, unequal_note
from .repeats import independent, repeats_note
from .show import show_number
from .summarise import bounds

TIME, COST = "time", "cost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    task: str
    key: str
    """`time`, `cost`, or a metric's name."""
    title: str
    scale: float
    high: bool
    """Whether higher is better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Measured values of a suite."""

    columns: tuple[Column, ...]
    values: dict[str, tuple[MeanEstimate | None, ...]]
    """Estimates of each row, one for each column. The keys are row labels."""
    notes: tuple[str, ...]
    """Notes on cells that have no value, or fewer seeds than planned."""
    marks: dict[tuple[str, int], int]
    """Number of each cell's note, counted from 1, by row label and column number."""
    seeds: tuple[int, ...]
    """The seeds for which at least one value exists."""

    def best(self, column: int) -> set[str]:
        """Labels of the rows with the best displayed mean in a column; empty if all are equal."""
        means = {
            label: value.mean
            for label, row in self.values.items()
            if (value := row[column]) is not None
        }
        if not means:
            return set()
        top = (max if self.columns[column].high else min)(means.values())
        best = {label for label, mean in means.items() if show_number(mean) == show_number(top)}
        return set() if best == set(means) else best


def suite_columns(suite: SuiteSettings) -> tuple[Column, ...]:
    """The columns of a suite's table: time, cost and metrics of each task."""
    columns: list[Column] = []
    for task in suite.configs:
        columns += [
            Column(task=task, key=TIME, title="Time", scale=1.0, high=False),
            Column(task=task, key=COST, title="Cost", scale=1.0, high=False),
        ]
        columns += [
            Column(
                task=task,
                key=column.metric,
                title=column.title,
                scale=column.scale,
                high=column.best == "high",
            )
            for column in suite.columns[task].metrics
        ]
    return tuple(columns)


def read_figures(suite: SuiteSettings, folder: Path) -> Figures:
    """The values of the finished runs below `folder`.

    Errors: CheckpointError if a file of a run cannot be read.
    """
    columns = suite_columns(suite)
    values: dict[str, list[MeanEstimate | None]] = {label: [] for label in suite.rows}
    notes: list[str] = []
    marks: dict[tuple[str, int], int] = {}
    seeds: set[int] = set()

    def note(text: str) -> int:
        if text not in notes:
            notes.append(text)
        return notes.index(text) + 1

    for task in suite.configs:
        planned = _planned(ComparisonFolder(folder / task))
        steps: dict[str, list[int]] = {}
        task_columns = [(n, column) for n, column in enumerate(columns) if column.task == task]
        for label, printed in suite.rows.items():
            location = f"{suite.columns[task].title}, {printed}"
            folders = planned.get(label, [])
            finished = [run for run in folders if run.status == "finished"]
            finished_runs = [read_run(run, label) for run in finished]
            seeds |= {run.seed for run in finished_runs}
            runs = independent(finished_runs)
            steps[printed] = final_steps(runs)
            caution = _why_missing(folders, finished, suite.configs[task], label)
            caution = caution or repeats_note(
                "the row", len(finished_runs), len(runs)
            ).removesuffix(".")
            for number, column in task_columns:
                figures = [_figure(run, column) for run in runs]
                figure = estimate(figures, **_bounds(runs, column))
                values[label].append(figure)
                if caution:
                    marks[label, number] = note(f"{location}: {caution}")
                elif figure is None:
                    reason = f"its evaluation gave no finite '{_metrics(column)[0]}'"
                    marks[label, number] = note(f"{location}: {reason}")
        if unequal := unequal_note(steps):
            note(f"{suite.columns[task].title}: {unequal.removesuffix('.')}")
    return Figures(
        columns=columns,
        values={label: tuple(row) for label, row in values.items()},
        notes=tuple(notes),
        marks=marks,
        seeds=tuple(sorted(seeds)),
    )


def _planned(folder: ComparisonFolder) -> dict[str, list[RunFolder]]:
    """Folders of the planned runs for each row label."""
    runs_by_label: dict[str, list[RunFolder]] = {}
    for label, run in folder.planned():
        runs_by_label.setdefault(label, []).append(run)
    return runs_by_label


def _why_missing(
    folders: Sequence[RunFolder], finished: Sequence[RunFolder], config: str, label: str
) -> str | None:
    if not folders:
        return f"{config} has no entry '{label}' in compare.algorithms"
    absent = [run for run in folders if run not in finished]
    if not absent:
        return None
    error = last_error(absent[0])
    reason = f"run failed: {error}" if error else _unfinished(absent[0])
    if len(folders) == 1:
        return reason
    return f"{len(finished)} of {len(folders)} seeds; {absent[0].name}: {reason}"


def _unfinished(run: RunFolder) -> str:
    steps = run.environment_steps()
    return f"not finished, {steps} environment steps made" if run.lines() else "not run yet"


def _metrics(column: Column) -> tuple[str, ...]:
    """The evaluation metrics whose product is shown in a column."""
    if column.key == TIME:
        # a pipeline's turns are micro-turns of one agent after another, so their times add up
        return ("response_seconds", "turns")
    return ("tokens_per_turn",) if column.key == COST else (column.key,)


def _bounds(runs: Sequence[Run], column: Column) -> dict[str, float | None]:
    """The least and the largest value of a column; None: unknown."""
    if column.key in (TIME, COST):
        return {"least": 0.0, "most": None}
    known = bounds(runs, column.key)
    return {end: None if value is None else column.scale * value for end, value in known.items()}


def _figure(run: Run, column: Column) -> float | None:
    """A column's value from a run's last evaluation; None if a metric is missing."""
    product = column.scale
    for name in _metrics(column):
        value = run.evaluations[-1].metrics.get(name)
        if value is None:
            return None
        product *= value
    return product
