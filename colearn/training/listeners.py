"""Sends the events of a run to callbacks and trackers, and writes them to the run's files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from math import nan
from pathlib import Path
from typing import Any, Literal

from colearn.config import ResolvedRun, build_tracker, recorded_settings
from colearn.contract import (
    Callback,
    EvaluateEvent,
    Event,
    Measured,
    RolloutEvent,
    SaveEvent,
    StartEvent,
    Tracker,
    UpdateEvent,
)
from colearn.contract.global_switches import checked, guarded
from colearn.contract.part_errors import calling_part
from colearn.contract.types import Tree
from colearn.errors import ConfigError, nearest
from colearn.runs.record import Line, Progress, RunWriter
from colearn.runs.record.collapse import CollapseWatch, sentence
from colearn.runs.record.fields import CriticLine
from colearn.runs.record.recorded_tree import recorded_tree
from colearn.runs.record.transcript import transcript
from colearn.text.notes import note
from colearn.text.printable import printable, printable_data
from colearn.text.real_number import real_number

from .processes import Processes


class Listeners:
    """Notifies a run's callbacks and then its trackers; writes metrics and transcripts."""

    def __init__(
        self, run: ResolvedRun, writer: RunWriter, processes: Processes, progress: Progress
    ) -> None:
        self.writer = writer
        self.stop: str | None = None
        """The first reason for ending the run that a callback gave."""
        self._run, self._processes, self._progress = run, processes, progress
        self._started: list[Callback] = []
        """Callbacks and trackers that received the start event."""
        self._collapse = CollapseWatch(optimum=run.task.optimum)
        self._announced: tuple[Any, ...] = ()
        """The last collapse that was printed."""

    def start(self, *, resumed: bool) -> None:
        """Open the trackers, and notify callbacks and trackers that the run starts.

        Errors: ConfigError for an invalid setting of a tracker, MissingExtra for a missing package,
        CheckpointError for a tracker that cannot write.
        """
        folder = self.writer.folder
        plain = printable_data(recorded_settings(self._run.config))
        if resumed:
            for line in folder.lines():
                if line.kind == "update":
                    self._collapse.update(line.iteration, line.metrics)
        event = StartEvent(
            **self._place,
            folder=folder.path,
            config=plain,
            headline=self._run.headline,
            resumed=resumed,
            earlier=tuple(_earlier(folder.lines())) if resumed else (),
        )
        chosen = self._run.config.run.trackers if self._processes.main else ()
        for callback in (
            *self._run.callbacks,
            *(build_tracker(tracker, folder.path, plain) for tracker in chosen),
        ):
            with self._calling(callback):
                callback.on_start(event)
            _check_stop(callback, event)
            self._started.append(callback)
        self._heed(event)

    def end(self) -> None:
        """Notify callbacks and trackers, in reverse order, that the run has ended; trackers then
        close."""
        while self._started:
            callback = self._started.pop()
            with self._calling(callback):
                callback.on_end()

    def rollout(self, trees: Sequence[Tree[Any]]) -> None:
        if not self._started:
            return
        event = RolloutEvent(**self._place, trees=trees)
        for callback in self._started:
            with self._calling(callback):
                callback.on_rollout(event)
            _check_stop(callback, event)
        self._heed(event)

    def update(
        self, trees: Sequence[Tree[Any]], metrics: dict[str, float], critic: CriticLine | None
    ) -> None:
        """Notify callbacks and trackers of an update and record the update: its metrics, the line
        of its critic and, if the config says so, its trees. Errors: ConfigError for a metric that
        is not a number."""
        if self._run.config.train.record:
            at = self._progress.iteration
            self.writer.trees(recorded_tree(at, tree) for tree in trees)
        if critic is not None:
            self.writer.critic(critic)
        self._watch(metrics)
        event = UpdateEvent(**self._place, trees=trees, metrics=metrics)
        self._tell_and_write("update", event)

    def _watch(self, metrics: dict[str, float]) -> None:
        """Add the metric `collapse`, and print when a collapse begins or the task is solved."""
        iteration = self._progress.iteration
        found = self._collapse.update(iteration, metrics)
        lasting = found is not None and not found.solved
        metrics["collapse"] = float(iteration - found.since + 1) if found and lasting else 0.0
        if found is not None:
            place = (found.sign, found.since, found.solved)
            if place != self._announced:
                self._announced = place
                note(f"{self.writer.folder.path.name}: {sentence(found)}")

    def evaluation(self, trees: Sequence[Tree[Any]], metrics: dict[str, float]) -> None:
        """Notify callbacks and trackers of an evaluation and record the evaluation with its first
        episodes. Errors, raised before a line is written: ConfigError if the headline metric is
        missing, or for a metric that is not a number."""
        first_trees, at = trees[: self._run.config.evaluation.transcripts], self._progress.iteration
        episodes = [{"iteration": at, **transcript(self._run.task, tree)} for tree in first_trees]
        event = EvaluateEvent(
            **self._place,
            trees=trees,
            metrics=metrics,
            episodes=episodes,
            headline=self._run.headline,
        )
        self._tell_and_write("evaluation", event)

    def saved(self, checkpoint: Path) -> None:
        event = SaveEvent(**self._place, folder=self.writer.folder.path, checkpoint=checkpoint)
        for callback in self._started:
            with self._calling(callback):
                callback.on_save(event)
            _check_stop(callback, event)
        self._heed(event)

    @property
    def _place(self) -> dict[str, Any]:
        progress = self._progress
        return {
            "iteration": progress.iteration,
            "environment_steps": progress.environment_steps,
            "task": self._run.task,
        }

    @contextmanager
    def _calling(self, callback: Callback) -> Iterator[None]:
        """Context for a call of a callback. Global switches that it changes are put back.

        Errors: ConfigError for an exception of a user's class (`calling_part`). A tracker's failed
        write, for example on a full disk, is the error of the run's other files.
        """
        tracks = isinstance(callback, Tracker)
        writing = self.writer.writing() if tracks else nullcontext()
        field = "run.trackers" if tracks else "callbacks"
        who = f"{field}: {type(callback).__name__}"
        generating = self._run.config.train.staleness > 0
        guard = guarded(who) if tracks else checked(who, generating=generating)
        with calling_part(field, callback), writing, guard:
            yield

    def _tell_and_write(
        self, kind: Literal["update", "evaluation"], event: UpdateEvent | EvaluateEvent
    ) -> None:
        """Notify callbacks, write the line of metrics, then notify trackers. The line therefore
        includes the metrics that callbacks have added. Callbacks that add metrics are notified
        before all other callbacks, regardless of the configured order, so that the other callbacks
        can watch the added metrics."""
        trackers = [callback for callback in self._started if isinstance(callback, Tracker)]
        others = [callback for callback in self._started if not isinstance(callback, Tracker)]
        for callback in sorted(others, key=lambda callback: not callback.adds):
            with self._calling(callback):
                _tell(callback, event)
        if isinstance(event, EvaluateEvent):
            name, metrics = event.headline.metric, event.metrics
            if name not in metrics:
                raise ConfigError(
                    f"evaluation.headline: no metric '{name}'; {nearest(name, metrics)}"
                )
            self.writer.episodes(event.episodes)
        self._line(kind, event.metrics)
        if trackers and isinstance(event, EvaluateEvent):
            event.episodes = printable_data(event.episodes)
        for tracker in trackers:
            with self._calling(tracker):
                _tell(tracker, event)
        self._heed(event)

    def _line(self, kind: Literal["update", "evaluation"], metrics: Mapping[str, float]) -> None:
        progress = self._progress
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

    def _heed(self, event: Event) -> None:
        """Stop the run in every process if a callback in at least one process requests a stop; a
        collective call."""
        if self._run.callbacks and self._processes.any(event.stop is not None):
            self.stop = self.stop or event.stop or "stopped by a callback of another process"


def _tell(callback: Callback, event: UpdateEvent | EvaluateEvent) -> None:
    if isinstance(event, UpdateEvent):
        callback.on_update(event)
    else:
        callback.on_evaluate(event)
    _check_stop(callback, event)
    for name, value in list(event.metrics.items()):
        if type(value) is not float or not isinstance(name, str):
            event.metrics[name] = _number(callback, name, value)
        if (shown := printable(name)) != name:  # files and terminals do not take it
            event.metrics[shown] = event.metrics.pop(name)


def _check_stop(callback: Callback, event: Event) -> None:
    """Errors: ConfigError for a reason that is no text, such as False, which would end the run."""
    if not isinstance(event.stop, str | None):
        raise ConfigError(
            f"callbacks: {type(callback).__name__} set stop to {event.stop!r:.60}; to end the run, "
            "set a text, the reason"
        )
    event.stop = None if event.stop is None else printable(event.stop)


def _number(callback: Callback, name: Any, value: Any) -> float:
    """A callback's metric as a float; None is NaN. Errors: ConfigError if it is no number."""
    try:
        number = nan if value is None else real_number(value)
        if isinstance(name, str):
            return number
        text = str(number)
    except TypeError as error:
        text = str(error)
    raise ConfigError(
        f"callbacks: {type(callback).__name__} set the metric {name!r:.60} to {text}; set a "
        "number under a name"
    )


def _earlier(lines: Iterable[Line]) -> Iterable[Measured]:
    for line in lines:
        yield Measured(
            kind=line.kind,
            iteration=line.iteration,
            environment_steps=line.environment_steps,
            metrics=printable_data(line.metrics),
        )
