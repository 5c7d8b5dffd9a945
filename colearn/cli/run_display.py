"""Progress display of one run, which restarts may start several times."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

from rich.console import Console

from colearn.comparison.progress import Bars, Goal, Lines, Silence, watch
from colearn.experiment.loop import Experiment, Report
from colearn.record import Progress, RunFolder, RunRecord
from colearn.record.meter import Meter
from colearn.record.time_use import bottleneck, shares
from colearn.record.writer import resume_command
from colearn.text.notes import speaks

_EVALUATION = "evaluation/"
"""Prefix of an evaluation's metrics in the reports of an experiment."""


class RunDisplay:
    """Prints how a run starts, advances and ends; rank 0 alone prints."""

    def __init__(self, name: str, out: Path) -> None:
        self._name, self._out = name, out
        self._stack = contextlib.ExitStack()
        self._watcher: Bars | Lines | Silence | None = None
        self._progress = Progress()

    def __enter__(self) -> RunDisplay:
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def started(self, experiment: Experiment) -> Report:
        """Show a start; the result receives the experiment's reports."""
        run, at = experiment.assembly.run, experiment.progress.iteration
        self._judged, train = run.headline, run.config.train
        if self._watcher is None:
            goal = Goal(train.environment_steps, train.iterations, self._judged.metric)
            self._watcher = watch(Console(), {self._name: goal}) if speaks() else Silence()
            self._stack.enter_context(self._watcher)
        self._watcher.started(self._name, f"resumed at iteration {at}" if at else "started")
        self._meter = Meter(self._judged.metric)
        self._progress = experiment.progress
        return self._report

    def interrupted(self) -> None:
        self._ended("interrupted")
        kept = f"interrupted; the state of iteration {self._progress.iteration} is kept"
        if speaks():
            print(f"{kept}; continue with: {resume_command(self._out)}", file=sys.stderr)

    def finished(self, record: RunRecord) -> None:
        self._ended("finished")
        self._stack.close()
        first, last = record.first[self._judged.metric], record.last[self._judged.metric]
        if speaks():
            values = f"{_shown(first)} -> {_shown(last)}"
            print(f"evaluation {self._judged.label} {values}; run in {self._out}")
            lines = RunFolder(self._out).lines()
            line_of_use = bottleneck(
                shares(line.metrics for line in lines if line.kind == "update")
            )
            if line_of_use:
                print(line_of_use)

    def _ended(self, outcome: str) -> None:
        if self._watcher is not None:
            self._watcher.ended(self._name, outcome)

    def _report(self, progress: Progress, metrics: dict[str, float]) -> None:
        steps = (progress.environment_steps, progress.iteration)
        evaluation = {
            key.removeprefix(_EVALUATION): value
            for key, value in metrics.items()
            if key.startswith(_EVALUATION)
        }
        if evaluation:
            self._meter.evaluated(*steps, evaluation)
        else:
            cost = (progress.generated_tokens, progress.wall_seconds)
            self._meter.updated(*steps, *cost, metrics)
        assert self._watcher is not None
        self._watcher.advanced(self._name, self._meter.status)


def _shown(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.3f}"
