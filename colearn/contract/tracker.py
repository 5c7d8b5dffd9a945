"""Tracker interface: an additional destination for a run's metrics (wandb, TensorBoard)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .callback import Callback, EvaluateEvent, UpdateEvent


class Tracker(Callback, ABC):
    """A callback that receives metrics and full episodes, together with the environment step.

    The constructor receives the run's folder and its config as plain data; further parameters are
    settings in `run.trackers`. Trackers are called after the other callbacks, on rank 0 only. A run
    that continues from a checkpoint logs the steps after that checkpoint again, with the same
    values. `on_start` receives the step of the checkpoint.
    """

    @abstractmethod
    def __init__(self, folder: Path, config: Mapping[str, Any]) -> None:
        """Errors: MissingExtra naming the pip command."""

    @abstractmethod
    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Record the metrics of an update or an evaluation."""

    @abstractmethod
    def transcripts(self, episodes: Sequence[Mapping[str, Any]], step: int) -> None:
        """Record lines of episodes.jsonl."""

    @abstractmethod
    def close(self) -> None:
        """Flush and close at the end of the run."""

    def on_update(self, event: UpdateEvent) -> None:
        self.log(prefixed("update", event.metrics), event.environment_steps)

    def on_evaluate(self, event: EvaluateEvent) -> None:
        self.transcripts(event.episodes, event.environment_steps)
        self.log(prefixed("evaluation", event.metrics), event.environment_steps)

    def on_end(self) -> None:
        self.close()


def prefixed(kind: str, metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Metrics with the names that trackers use: `update/NAME` and `evaluation/NAME`."""
    return {f"{kind}/{name}": value for name, value in metrics.items()}
