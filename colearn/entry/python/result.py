"""Results of a run and of a comparison: folder, record, metrics and report."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from markupsafe import Markup

from colearn.errors import ShortTraceback
from colearn.registry.given import PREFIX, give
from colearn.runs.record import Run, open_run, read_run
from colearn.runs.record.checkpoints import Step


@dataclass(frozen=True, repr=False)
class Result:
    """A finished run. A notebook displays the run's report."""

    run: Run
    """The run's record, evaluations and updates."""
    objects: Mapping[str, Any] = field(default_factory=dict)
    """The objects that the run's config names as `object:NAME`."""

    def evaluate(self, *, step: Step = "last", **settings: Any) -> dict[str, float]:
        """Evaluate a checkpoint of the run again and return the metrics.

        step: an iteration, `last` or `best`. settings: settings of the section `evaluation`, such
        as `split="train"` or `greedy=True`. In another program, call `colearn.train` with the same
        objects, `out` and `resume=True` first, which trains no more if the run is finished.

        Errors: ConfigError for an unknown setting; CheckpointError without such a checkpoint.
        """
        with ShortTraceback():
            from colearn.training.evaluation.again import evaluate_again  # loads torch

            for name, value in self.objects.items():
                give(value, name.removeprefix(PREFIX))
            changes = {f"evaluation.{name}": value for name, value in settings.items()}
            return evaluate_again(self.run.folder, self.run.folder.config(changes), step)

    @property
    def folder(self) -> Path:
        """The run's folder, which `colearn export`, `play` and `report` read."""
        return self.run.folder.path

    @property
    def metrics(self) -> dict[str, float | None]:
        """Metrics of the last evaluation."""
        return dict(self.run.evaluations[-1].metrics)

    def curve(self, metric: str | None = None) -> list[tuple[int, float | None]]:
        """Returns one pair (environment steps, value) per evaluation. If `metric` is None, the
        value is the headline metric.

        Raises KeyError for a metric that the run does not have.
        """
        name = metric or self.run.record.headline.metric
        return [(line.environment_steps, line.metrics[name]) for line in self.run.evaluations]

    def __str__(self) -> str:
        record = self.run.record
        name = record.headline.metric
        first, last = self.run.evaluations[0].metrics[name], self.metrics[name]
        change = f"{name} {_shown(first)} -> {_shown(last)}"
        names = (record.algorithm.removeprefix(PREFIX), record.task.removeprefix(PREFIX))
        return f"{' on '.join(names)}: {change} ({self.folder})"

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        from colearn.runs.report.write import live_page  # draws with matplotlib

        return _framed(str(self), live_page(self.folder, None))


@dataclass(frozen=True)
class ComparisonResult:
    """A finished comparison. A notebook displays its report."""

    folder: Path
    """Folder that `colearn report` reads. A call of `compare` with the same arguments adds runs to
    this folder."""

    @property
    def report(self) -> Path:
        """Path of the page with the curves and the transcripts."""
        return self.folder / "report.html"

    @property
    def summary(self) -> dict[str, Any]:
        """The content of summary.json, which lists every metric of each algorithm at the start and
        at the end of training."""
        content: dict[str, Any] = json.loads((self.folder / "summary.json").read_text())
        return content

    def __fspath__(self) -> str:
        return str(self.report)

    def __str__(self) -> str:
        table = (self.folder / "table.md").read_text().strip()
        return f"{self.summary['headline']}\n\n{table}\n\nreport: {self.report}"

    def _repr_html_(self) -> str:
        return _framed(f"report: {self.report}", self.report.read_text(encoding="utf-8"))


def read_result(folder: Path, objects: Mapping[str, Any] | None = None) -> Result:
    """The result in a run's folder. Errors: CheckpointError for one without an evaluation."""
    return Result(read_run(open_run(folder)), objects or {})


def _framed(title: str, page: str) -> str:
    """A page in a frame without scripts, for notebooks."""
    frame = '<p>{}</p><iframe sandbox srcdoc="{}" style="width: 100%; height: 40em"></iframe>'
    return str(Markup(frame).format(title, page))


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
