"""The tracker: a further sink for a run's metrics, such as wandb or TensorBoard."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


class Tracker(ABC):
    """Takes numbers by name, and episodes in full, at an environment step.

    Built with the run's folder and its config as plain data; what a constructor takes beyond these
    are its settings in `run.trackers`.
    """

    @abstractmethod
    def __init__(self, folder: Path, config: Mapping[str, Any]) -> None:
        """Errors: MissingExtra naming the pip command."""

    @abstractmethod
    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Numbers of an update or an evaluation."""

    @abstractmethod
    def transcripts(self, episodes: Sequence[Mapping[str, Any]], step: int) -> None:
        """Lines of episodes.jsonl."""

    @abstractmethod
    def close(self) -> None:
        """The run ends."""
