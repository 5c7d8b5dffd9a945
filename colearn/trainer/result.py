"""Result of a run: the run's folder, its record and the metrics of its evaluations."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from colearn.record import Run, open_run, read_run
from colearn.registry.given import PREFIX


@dataclass(frozen=True, repr=False)
class Result:
    """A finished run. A notebook displays the run's curve, metrics and last transcript."""

    run: Run
    """The run's record, evaluations and updates."""

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
        from .result_html import result_html  # draws with matplotlib

        return result_html(self.run, str(self), self.run.record.headline.label, self.curve())


def read_result(folder: Path) -> Result:
    """Returns the result in a run's folder. Errors: CheckpointError for a folder without an
    evaluation."""
    return Result(read_run(open_run(folder)))


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
