"""Command-line display of one run: shows the run's progress, and then the commands that the user
can run next on the run's folder."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from colearn.config import Config
from colearn.entry.python.run_progress import RunProgress
from colearn.runs.record import Progress, RunFolder, RunRecord
from colearn.runs.record.files import write_text
from colearn.runs.record.time_use import bottleneck, shares
from colearn.runs.record.writer import resume_command
from colearn.text.notes import speaks
from colearn.text.printable import printable
from colearn.training.loop import Experiment, Report

PAGE = "watch.html"
"""File name of a run's page in the run's folder."""
_SECONDS = 30.0
"""Seconds after which the page is rewritten even without an evaluation."""
_REFRESH = 10
"""Seconds after which a browser reloads the page."""


class RunDisplay(RunProgress):
    """Prints how a run starts, advances and ends, and the command that continues an unfinished run.
    If `watch` is set, also writes the run's page after every evaluation, and once every `_SECONDS`
    seconds between evaluations."""

    def __init__(self, config: Config, out: Path, *, watch: bool = False) -> None:
        super().__init__(config)
        self._out = out
        self._page = out / PAGE if watch and speaks() else None
        self._written = 0.0
        self._progress = Progress()

    def started(self, experiment: Experiment) -> Report:
        self._progress = experiment.progress
        tell, judged = super().started(experiment), experiment.team.run.headline.metric

        def tell_and_write(progress: Progress, metrics: dict[str, float]) -> None:
            tell(progress, metrics)
            evaluated = f"evaluation/{judged}" in metrics
            if evaluated or time.monotonic() - self._written >= _SECONDS:
                self._write(_REFRESH)

        return tell_and_write

    def interrupted(self) -> None:
        self.ended("interrupted")
        self._write(None)
        message = f"interrupted; the state of iteration {self._progress.iteration} is kept"
        if speaks():
            print(f"{message}; continue with: {resume_command(self._out)}", file=sys.stderr)

    def finished(self, record: RunRecord) -> None:
        self.ended(record.ending)
        self._write(None)
        if not speaks():
            return
        first, last = record.first[self.headline.metric], record.last[self.headline.metric]
        values = f"{_shown(first)} -> {_shown(last)}"
        print(f"evaluation {printable(self.headline.label)} {values}; run in {self._out}")
        lines = RunFolder(self._out).lines()
        line_of_use = bottleneck(shares(line.metrics for line in lines if line.kind == "update"))
        if line_of_use:
            print(line_of_use)

    def _write(self, refresh: int | None) -> None:
        """Write the run's page. `refresh`: as in `live_page`."""
        if self._page is None or not RunFolder(self._out).evaluations():
            return
        from colearn.runs.report.write import live_page

        write_text(self._page, live_page(self._out, refresh))
        if not self._written:
            print(f"watch: {self._page.resolve().as_uri()}", file=sys.stderr)
        self._written = time.monotonic()


def _shown(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.3f}"
