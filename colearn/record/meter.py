"""Computes a run's current evaluation, rolling training return and tokens per second."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

_UPDATES = 20
"""Number of updates over which the training return and the tokens per second are averaged."""

Metrics = Mapping[str, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """Current progress of a run."""

    environment_steps: int = 0
    iteration: int = 0
    evaluation: float | None = None
    """The headline metric at the latest evaluation."""
    evaluated_at: int | None = None
    """Environment steps at the latest evaluation."""
    training_return: float | None = None
    """Mean return of the training episodes of the latest updates."""
    tokens_per_second: float | None = None
    """Generated tokens per second of training time (including updates), over the latest updates."""


class Meter:
    """Computes a `Status` from a run's updates and evaluations.

    metric: the headline metric, as in `Line.metrics` of an evaluation.
    """

    def __init__(self, metric: str = "return") -> None:
        self.metric = metric
        self.reset()

    def reset(self) -> None:
        """Discard all values, because the next lines start from the beginning of the run."""
        self._steps = self._iteration = 0
        self._evaluation: float | None = None
        self._evaluated_at: int | None = None
        self._returns: deque[float] = deque(maxlen=_UPDATES)
        self._costs: deque[tuple[int, float]] = deque([(0, 0.0)], maxlen=_UPDATES + 1)
        """Generated tokens and training seconds after each update."""

    def evaluated(self, environment_steps: int, iteration: int, metrics: Metrics) -> None:
        self._steps, self._iteration = environment_steps, iteration
        if self.metric in metrics:
            self._evaluation, self._evaluated_at = metrics[self.metric], environment_steps

    def updated(
        self,
        environment_steps: int,
        iteration: int,
        generated_tokens: int,
        wall_seconds: float,
        metrics: Metrics,
    ) -> None:
        """Record an update, with the tokens and training seconds of the whole run so far."""
        self._steps, self._iteration = environment_steps, iteration
        self._costs.append((generated_tokens, wall_seconds))
        if (value := metrics.get("return")) is not None:
            self._returns.append(value)

    @property
    def status(self) -> Status:
        (tokens, seconds), (tokens_now, seconds_now) = self._costs[0], self._costs[-1]
        mean = sum(self._returns) / len(self._returns) if self._returns else None
        passed = seconds_now - seconds
        return Status(
            environment_steps=self._steps,
            iteration=self._iteration,
            evaluation=self._evaluation,
            evaluated_at=self._evaluated_at,
            training_return=mean,
            tokens_per_second=(tokens_now - tokens) / passed if passed > 0 else None,
        )
