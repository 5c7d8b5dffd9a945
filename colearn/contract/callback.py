"""Callback interface: receives events about a run's rollouts, updates, evaluations and
checkpoints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from colearn.contract.types import Tree

from .headline import Headline
from .task import DecPOMDP


@dataclass(slots=True, kw_only=True)
class Event:
    """The state of a run when an event occurs."""

    iteration: int
    """Number of updates so far."""
    environment_steps: int
    """Number of joint actions so far."""
    task: DecPOMDP[Any, Any]
    stop: str | None = None
    """Reason for ending the run; a callback sets this field in order to end the run. The run is
    then evaluated, saved and marked as finished."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A line that an earlier process of the same run wrote to metrics.jsonl."""

    kind: Literal["update", "evaluation"]
    iteration: int
    environment_steps: int
    metrics: Mapping[str, float | None]
    """Metrics by name; a value is None if it was not finite."""


@dataclass(slots=True, kw_only=True)
class StartEvent(Event):
    """Event: a run starts, or continues from a checkpoint."""

    folder: Path
    """The run's folder."""
    config: Mapping[str, Any]
    """The run's config as plain data, including all defaults."""
    headline: Headline
    resumed: bool
    earlier: Sequence[Measured]
    """Lines of metrics.jsonl up to the checkpoint; empty unless the run was resumed."""


@dataclass(slots=True, kw_only=True)
class RolloutEvent(Event):
    """Event: the trees of the next update have been rolled out."""

    trees: Sequence[Tree[Any]]


@dataclass(slots=True, kw_only=True)
class UpdateEvent(Event):
    """Event: the models have been updated."""

    trees: Sequence[Tree[Any]]
    metrics: dict[str, float]
    """The logged metrics of the update; a callback may add to them."""


@dataclass(slots=True, kw_only=True)
class EvaluateEvent(Event):
    """Event: the team has been evaluated."""

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
    """Event: a checkpoint has been written."""

    folder: Path
    """The run's folder."""
    checkpoint: Path


class Callback:
    """Receives the events of a run. Each method does nothing by default.

    A callback class, shipped or user-defined, is a frozen dataclass whose fields are the settings
    of an entry in `run.callbacks`. From Python, pass an instance in `callbacks=[...]`. Methods run
    in the run's thread. In a distributed run, every process calls these methods with the same trees
    and the same returns.
    """

    @property
    def adds(self) -> Sequence[str]:
        """Names of the metrics that the callback adds to evaluations; any of them can be the
        headline metric."""
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
