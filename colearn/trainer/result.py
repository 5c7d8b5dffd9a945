"""Result of a run: its folder, its record and the metrics of its evaluations."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from colearn.record import Run, open_run, read_run


@dataclass(frozen=True)
class Result:
    """A finished run. A notebook shows it as a table."""

    run: Run
    """Its record, its evaluations and its updates."""

    @property
    def folder(self) -> Path:
        """The run's folder: what `colearn export`, `play` and `report` read."""
        return self.run.folder.path

    @property
    def metrics(self) -> dict[str, float | None]:
        """Metrics of the last evaluation."""
        return dict(self.run.evaluations[-1].metrics)

    def curve(self, metric: str | None = None) -> list[tuple[int, float | None]]:
        """(environment steps, value) of each evaluation; None: the headline metric.

        Raises KeyError for a metric that the run does not have.
        """
        name = metric or self.run.record.headline.metric
        return [(line.environment_steps, line.metrics[name]) for line in self.run.evaluations]

    def __str__(self) -> str:
        record = self.run.record
        name = record.headline.metric
        first, last = self.run.evaluations[0].metrics[name], self.metrics[name]
        change = f"{name} {_shown(first)} -> {_shown(last)}"
        return f"{record.algorithm} on {record.task}: {change} ({self.folder})"

    def _repr_html_(self) -> str:
        first, last = self.run.evaluations[0], self.run.evaluations[-1]
        rows = Markup("").join(
            Markup("<tr><td>{}</td><td>{}</td><td>{}</td></tr>").format(
                name, _shown(first.metrics.get(name)), _shown(value)
            )
            for name, value in last.metrics.items()
        )
        head = Markup("<tr><th></th><th>{} steps</th><th>{} steps</th></tr>").format(
            first.environment_steps, last.environment_steps
        )
        title = Markup("<p>{}</p>").format(str(self))
        return str(title + Markup("<table>") + head + rows + Markup("</table>"))


def read_result(folder: Path) -> Result:
    """The result in a run's folder. Errors: CheckpointError for a folder without an evaluation."""
    return Result(read_run(open_run(folder)))


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
