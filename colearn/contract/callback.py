"""Callback interface: events of a run's rollouts, updates, evaluations and checkpoints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from colearn.types import Tree

from .headline import Headline
from .task import DecPOMDP


@dataclass(slots=True, kw_only=True)
class Event:
    """Where a run is."""

    iteration: int
    """Updates so far."""
    environment_steps: int
    """Joint actions so far."""
    task: DecPOMDP[Any, Any]
    stop: str | None = None
    """A callback sets it to a reason: the run is evaluated, saved and ends as finished."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A line of metrics.jsonl that an earlier process of the run has written."""

    kind: Literal["update", "evaluation"]
    iteration: int
    environment_steps: int
    metrics: Mapping[str, float | None]
    """None if a value was not finite."""


@dataclass(slots=True, kw_only=True)
class StartEvent(Event):
    """A run starts, or continues from a checkpoint."""

    folder: Path
    """The run's folder."""
    config: Mapping[str, Any]
    """Its config as plain data, with every default."""
    headline: Headline
    resumed: bool
    earlier: Sequence[Measured]
    """The lines up to this state; empty unless resumed."""


@dataclass(slots=True, kw_only=True)
class RolloutEvent(Event):
    """The trees of the next update have been rolled out."""

    trees: Sequence[Tree[Any]]


@dataclass(slots=True, kw_only=True)
class UpdateEvent(Event):
    """The models have been updated."""

    trees: Sequence[Tree[Any]]
    metrics: dict[str, float]
    """The logged metrics of the update; a callback may add to them."""


@dataclass(slots=True, kw_only=True)
class EvaluateEvent(Event):
    """The team has been evaluated."""

    trees: Sequence[Tree[Any]]
    """The evaluation's episodes."""
    metrics: dict[str, float]
    """The logged metrics of the evaluation, including the headline metric; a callback may add to
    them."""
    episodes: Sequence[Mapping[str, Any]]
    """Lines of episodes.jsonl: the first `evaluation.transcripts` episodes as text."""
    headline: Headline


@dataclass(slots=True, kw_only=True)
class SaveEvent(Event):
    """A checkpoint has been written."""

    folder: Path
    """The run's folder."""
    checkpoint: Path


class Callback:
    """Receives the events of a run. Each method does nothing by default.

    A shipped or own class is a frozen dataclass, whose fields are its settings in `run.callbacks`;
    from Python its object is passed as `callbacks=[...]`. Methods run in the run's thread, in every
    process of a distributed run, where trees and returns are the same in all.
    """

    @property
    def adds(self) -> Sequence[str]:
        """Names of the metrics that it adds to evaluations. One of them can then be the
        headline."""
        return ()

    def on_start(self, event: StartEvent) -> None:
        """Called before the first rollout, and again when the run continues after a lost server or
        worker."""

    def on_rollout(self, event: RolloutEvent) -> None:
        """Called before each update."""

    def on_update(self, event: UpdateEvent) -> None:
        """Called after each update, before its metrics are logged."""

    def on_evaluate(self, event: EvaluateEvent) -> None:
        """Called after each evaluation, before its metrics are logged."""

    def on_save(self, event: SaveEvent) -> None:
        """Called after each checkpoint."""

    def on_end(self) -> None:
        """Called when the run ends, finished or not."""
