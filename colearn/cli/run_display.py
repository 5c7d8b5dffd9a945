"""Display of one run on the command line: its progress, and what to do with its folder."""

from __future__ import annotations

import sys
from pathlib import Path

from colearn.config import Config
from colearn.experiment.loop import Experiment, Report
from colearn.record import Progress, RunFolder, RunRecord
from colearn.record.time_use import bottleneck, shares
from colearn.record.writer import resume_command
from colearn.text.notes import speaks
from colearn.trainer.run_progress import RunProgress


class RunDisplay(RunProgress):
    """Prints how a run starts, advances and ends, and the command that continues it."""

    def __init__(self, config: Config, out: Path) -> None:
        super().__init__(config)
        self._out = out
        self._progress = Progress()

    def started(self, experiment: Experiment) -> Report:
        self._progress = experiment.progress
        return super().started(experiment)

    def interrupted(self) -> None:
        self.ended("interrupted")
        kept = f"interrupted; the state of iteration {self._progress.iteration} is kept"
        if speaks():
            print(f"{kept}; continue with: {resume_command(self._out)}", file=sys.stderr)

    def finished(self, record: RunRecord) -> None:
        self.ended("finished")
        if not speaks():
            return
        first, last = record.first[self.headline.metric], record.last[self.headline.metric]
        values = f"{_shown(first)} -> {_shown(last)}"
        print(f"evaluation {self.headline.label} {values}; run in {self._out}")
        lines = RunFolder(self._out).lines()
        line_of_use = bottleneck(shares(line.metrics for line in lines if line.kind == "update"))
        if line_of_use:
            print(line_of_use)


def _shown(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.3f}"
