"""The figures of a suite's table: per row and task response time, cost and the task's metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from colearn.config import SuiteSettings
from colearn.record import ComparisonFolder, Run, RunFolder, read_run
from colearn.record.log import last_error
from colearn.statistics import MeanEstimate, estimate

from .show import show_number

TIME, COST = "time", "cost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    task: str
    key: str
    """`time`, `cost`, or a metric's name."""
    title: str
    scale: float
    high: bool
    """Whether the highest mean is the best."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What a suite has measured."""

    columns: tuple[Column, ...]
    values: dict[str, tuple[MeanEstimate | None, ...]]
    """By row's label, one for each column."""
    notes: tuple[str, ...]
    """Why cells have no figure, or fewer seeds than were planned."""
    marks: dict[tuple[str, int], int]
    """By row's label and number of the column: the number of the note, from 1."""
    seeds: tuple[int, ...]
    """The seeds that any figure rests on."""

    def best(self, column: int) -> set[str]:
        """The labels whose mean, as it is shown, is the best of a column; none where all are."""
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
    """Time, cost and metrics of each task."""
    found: list[Column] = []
    for task in suite.configs:
        found += [
            Column(task=task, key=TIME, title="Time", scale=1.0, high=False),
            Column(task=task, key=COST, title="Cost", scale=1.0, high=False),
        ]
        found += [
            Column(
                task=task,
                key=column.metric,
                title=column.title,
                scale=column.scale,
                high=column.best == "high",
            )
            for column in suite.columns[task].metrics
        ]
    return tuple(found)


def read_figures(suite: SuiteSettings, folder: Path) -> Figures:
    """The figures of the finished runs below `folder`.

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
        own = [(n, column) for n, column in enumerate(columns) if column.task == task]
        for label, printed in suite.rows.items():
            where = f"{suite.columns[task].title}, {printed}"
            folders = planned.get(label, [])
            finished = [run for run in folders if run.status == "finished"]
            runs = [read_run(run, label) for run in finished]
            seeds |= {run.seed for run in runs}
            missing = _why_missing(folders, finished, suite.configs[task], label)
            for number, column in own:
                found = estimate([_figure(run, column) for run in runs])
                values[label].append(found)
                if missing:
                    marks[label, number] = note(f"{where}: {missing}")
                elif found is None:
                    reason = f"its evaluation gave no finite '{_metrics(column)[0]}'"
                    marks[label, number] = note(f"{where}: {reason}")
    return Figures(
        columns=columns,
        values={label: tuple(row) for label, row in values.items()},
        notes=tuple(notes),
        marks=marks,
        seeds=tuple(sorted(seeds)),
    )


def _planned(folder: ComparisonFolder) -> dict[str, list[RunFolder]]:
    """The folders of every label's runs."""
    found: dict[str, list[RunFolder]] = {}
    for label, run in folder.planned():
        found.setdefault(label, []).append(run)
    return found


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
    """The evaluation metrics whose product a column shows."""
    if column.key == TIME:
        # a pipeline's turns are micro-turns, one agent's after the other's, so that they add up
        return ("response_seconds", "turns")
    return ("tokens_per_turn",) if column.key == COST else (column.key,)


def _figure(run: Run, column: Column) -> float | None:
    """Of the last evaluation."""
    product = column.scale
    for name in _metrics(column):
        value = run.evaluations[-1].metrics.get(name)
        if value is None:
            return None
        product *= value
    return product
