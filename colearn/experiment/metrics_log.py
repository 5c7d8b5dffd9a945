"""Lines of metrics and transcripts: to the run's files, and to its trackers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from colearn.contract import Tracker
from colearn.record import Line, Progress, RunWriter


class MetricsLog:
    """Writes to the run's folder and to every tracker."""

    def __init__(self, writer: RunWriter, trackers: Sequence[Tracker]) -> None:
        self.writer, self.trackers = writer, trackers

    def line(
        self,
        kind: Literal["update", "evaluation"],
        progress: Progress,
        metrics: Mapping[str, float],
    ) -> None:
        """Errors: pydantic.ValidationError for a metric that is no number."""
        self.writer.metrics(
            Line.model_validate(
                {
                    "kind": kind,
                    "iteration": progress.iteration,
                    "environment_steps": progress.environment_steps,
                    "generated_tokens": progress.generated_tokens,
                    "updates": progress.updates,
                    "wall_seconds": progress.wall_seconds,
                    "metrics": metrics,
                }
            )
        )
        for tracker in self.trackers:
            named = {f"{kind}/{key}": value for key, value in metrics.items()}
            tracker.log(named, step=progress.environment_steps)

    def transcripts(self, progress: Progress, episodes: Sequence[Mapping[str, Any]]) -> None:
        """Episodes of an evaluation."""
        self.writer.episodes(episodes)
        for tracker in self.trackers:
            tracker.transcripts(episodes, step=progress.environment_steps)
