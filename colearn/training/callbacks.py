"""Shipped callbacks: early stopping, a custom metric, and printed samples."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from colearn.contract import Better, Callback, EvaluateEvent, Headline, StartEvent
from colearn.contract.part_errors import calling_part
from colearn.contract.types import Tree
from colearn.errors import ConfigError, nearest
from colearn.registry import own_function
from colearn.runs.record.fields import finite
from colearn.text.notes import speaks
from colearn.text.real_number import real_number

NAMES = {
    "early_stopping": ":EarlyStopping",
    "own_metric": ":OwnMetric",
    "samples": ":Samples",
}
"""Shipped callbacks, by name."""


@dataclass(frozen=True, kw_only=True)
class EarlyStopping(Callback):
    """Ends the run after an evaluation if the metric has reached `target`, or has not improved for
    `patience` evaluations. A resumed run also counts evaluations before the interruption."""

    metric: str | None = None
    """Evaluation metric to watch; None: the headline metric."""
    better: Better = "higher"
    """Whether `higher` or `lower` values of `metric` are better; ignored for the headline metric,
    whose definition includes the direction."""
    target: float | None = None
    """Metric value at which the run ends."""
    patience: int | None = None
    """Number of evaluations without improvement after which the run ends."""
    min_change: float = 0.0
    """Minimum difference from the best value that counts as an improvement."""
    _values: list[float] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Errors: ConfigError naming the setting."""
        if self.target is None and self.patience is None:
            raise ConfigError("patience: missing; give patience, target or both")
        if self.patience is not None and self.patience < 1:
            raise ConfigError(f"patience: must be at least 1, got {self.patience}")

    def on_start(self, event: StartEvent) -> None:
        self._values.clear()
        for line in event.earlier:
            value = line.metrics.get(self._watched(event.headline).metric)
            if line.kind == "evaluation" and value is not None:
                event.stop = event.stop or self._judge(value, event.headline)

    def on_evaluate(self, event: EvaluateEvent) -> None:
        name = self._watched(event.headline).metric
        if name not in event.metrics:
            raise ConfigError(
                f"run.callbacks.early_stopping.metric: no metric '{name}'; "
                f"{nearest(name, event.metrics)}"
            )
        event.stop = event.stop or self._judge(event.metrics[name], event.headline)

    def _watched(self, headline: Headline) -> Headline:
        return headline if self.metric is None else Headline(self.metric, self.better)

    def _judge(self, value: float, headline: Headline) -> str | None:
        """Reason why the run ends with this metric value; None if the run continues. A value that
        no record holds is passed over, as it is after a resume."""
        if finite(value) is None:
            return None
        watched = self._watched(headline)
        sign, name = watched.sign, watched.metric
        self._values.append(sign * value)
        if self.target is not None and sign * value >= sign * self.target:
            return f"{name} reached {value:.6g}"
        if self.patience is None:
            return None
        best, since = self._values[0], 0
        for next_value in self._values[1:]:
            best, since = (
                (next_value, 0) if next_value > best + self.min_change else (best, since + 1)
            )
        if since < self.patience:
            return None
        return f"{name} has not improved on {sign * best:.6g} for {since} evaluations"


@dataclass(frozen=True, kw_only=True)
class OwnMetric(Callback):
    """Adds a metric to evaluations: the mean of a function over the evaluation episodes."""

    function: Callable[[Tree[Any]], float | None] | str
    """Function that maps an episode to a number, or to None to exclude the episode from the mean.
    The function can be given as `module:function`. The last state is `tree.nodes[-1].state`; the
    actions of turn t are `tree.nodes[t].actions`."""
    label: str | None = None
    """The metric's name; None: the function's name."""

    @property
    def adds(self) -> Sequence[str]:
        return (self._name,)

    @property
    def _name(self) -> str:
        if self.label is not None:
            return self.label
        if isinstance(self.function, str):
            return self.function.rpartition(":")[2]
        return getattr(self.function, "__name__", type(self.function).__name__)

    def on_evaluate(self, event: EvaluateEvent) -> None:
        """Errors: ConfigError if the evaluation already has a metric of this name."""
        if self._name in event.metrics:
            raise ConfigError(
                f"run.callbacks: own_metric: evaluations have '{self._name}'; set another label"
            )
        function = self.function
        if isinstance(function, str):
            function = own_function(function, "run.callbacks.function")
        with calling_part("run.callbacks: own_metric", function):
            values = [value for tree in event.trees if (value := function(tree)) is not None]
        try:
            numbers = [real_number(value) for value in values]
        except TypeError as error:
            raise ConfigError(
                f"run.callbacks: own_metric: '{self._name}' returned {error}; return a number, or "
                "None to leave the episode out"
            ) from None
        if numbers:
            event.metrics[self._name] = sum(numbers) / len(numbers)


@dataclass(frozen=True, kw_only=True)
class Samples(Callback):
    """Prints the first episodes of evaluations as text; can print only episodes that
    `evaluation.transcripts` records."""

    count: int = 1
    """Number of episodes per evaluation."""
    every: int = 1
    """Number of evaluations between prints; the first evaluation is always printed."""
    _seen: list[int] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Errors: ConfigError naming the setting."""
        for name in ("count", "every"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name}: must be at least 1, got {getattr(self, name)}")

    def on_evaluate(self, event: EvaluateEvent) -> None:
        self._seen.append(event.iteration)
        if (len(self._seen) - 1) % self.every or not speaks():
            return
        for episode in event.episodes[: self.count]:
            print(_shown(episode), file=sys.stderr)


def _shown(episode: Mapping[str, Any]) -> str:
    """Returns an episode as text without control characters."""
    lines = [f"iteration {episode['iteration']}, item {episode['item']}"]
    for number, turn in enumerate(episode["turns"]):
        for agent, action in turn["actions"].items():
            lines.append(f"  turn {number}, {agent}: {action!r}")
    lines.append(f"  return {episode['return']}")
    return "\n".join(lines)
