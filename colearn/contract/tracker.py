"""Tracker interface: an additional sink for a run's metrics: wandb, trackio, TensorBoard."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


class Tracker(ABC):
    """Receives metrics and full episodes, each with an environment step.

    The constructor receives the run's folder and its config as plain data; further parameters are
    settings in `run.trackers`.
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
