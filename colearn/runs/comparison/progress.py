"""Prints the progress of runs as lines of text."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from colearn.runs.record.tail import Status
from colearn.text.notes import duration
from colearn.text.terminal import Terminal


class Watcher(Protocol):
    """Interface that receives the launcher's events."""

    def started(self, name: str, state: str) -> None: ...

    def advanced(self, name: str, status: Status) -> None: ...

    def noted(self, name: str, text: str) -> None: ...

    def ended(self, name: str, outcome: str) -> None: ...


_FRACTION = 0.1
"""Fraction of a run's budget after which a line is printed even without a new evaluation."""
_SECONDS = 60.0
"""Seconds after which a line is printed even without a new evaluation."""

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Goal:
    """A run's budget, and the metric shown in its progress."""

    environment_steps: int
    iterations: int | None = None
    metric: str = "return"

    def fraction(self, status: Status) -> float:
        """Used fraction of the budget: the larger of those in steps and in iterations."""
        steps = status.environment_steps / max(1, self.environment_steps)
        iterations = status.iteration / self.iterations if self.iterations else 0.0
        return min(1.0, max(steps, iterations))


Goals = Mapping[str, Goal]
"""Goals by run name."""


class RemainingTime:
    """Estimates a run's remaining seconds from its progress since the first report.

    The first report is made after loading and, in a new run, after the first evaluation.
    """

    def __init__(self, goal: Goal, clock: Clock) -> None:
        self._goal, self._clock = goal, clock
        self._first: tuple[float, float] | None = None

    def left(self, status: Status) -> float | None:
        """Remaining seconds; None before the first update and once the budget is used up."""
        at, fraction = self._clock(), self._goal.fraction(status)
        if self._first is None:
            self._first = fraction, at
        gained, passed = fraction - self._first[0], at - self._first[1]
        if gained <= 0 or passed <= 0 or fraction >= 1.0:
            return None
        return (1.0 - fraction) * passed / gained


def status_text(status: Status, label: str, remaining: float | None) -> str:
    """Returns a text with the evaluation, training return, tokens per second and remaining time, as
    far as these values are known. An evaluation of an earlier state is placed after the newer
    values, with the number of steps of the earlier state."""
    parts = []
    if status.training_return is not None:
        parts.append(f"training return {status.training_return:.3f}")
    if status.evaluation is not None:
        evaluation = f"evaluation {label} {status.evaluation:.3f}"
        if status.evaluated_at in (None, status.environment_steps):
            parts.insert(0, evaluation)
        else:
            parts.append(f"{evaluation} at {status.evaluated_at}")
    if status.tokens_per_second is not None:
        parts.append(f"{status.tokens_per_second:,.0f} tokens/s")
    if remaining is not None:
        parts.append(f"{duration(remaining)} left")
    return ", ".join(parts)


class Lines:
    """Prints a line at each start, note, evaluation and end of a run. Between these events, prints
    a line after every minute or tenth of the budget."""

    def __init__(self, console: Terminal, goals: Goals, clock: Clock = time.monotonic) -> None:
        self._console, self._goals, self._clock = console, goals, clock
        self._printed: dict[str, tuple[int, int | None, float]] = {}
        """For each run: the steps, the steps of the latest evaluation, and the clock time, all as
        of the run's latest line."""
        self._remaining = {name: RemainingTime(goal, clock) for name, goal in goals.items()}

    def started(self, name: str, state: str) -> None:
        self._print(name, state)

    def advanced(self, name: str, status: Status) -> None:
        goal, remaining, at = self._goals[name], self._remaining[name].left(status), self._clock()
        steps, evaluated_at, printed_at = self._printed.get(name, (0, None, at))
        due = (
            status.evaluated_at != evaluated_at
            or status.environment_steps - steps > _FRACTION * goal.environment_steps
            or at - printed_at >= _SECONDS
        )
        if not due:
            self._printed.setdefault(name, (steps, evaluated_at, printed_at))
            return
        self._printed[name] = (status.environment_steps, status.evaluated_at, at)
        text = status_text(status, goal.metric, remaining)
        steps_shown = f"{status.environment_steps}/{goal.environment_steps} environment steps"
        self._print(name, f"{steps_shown}, {text}" if text else steps_shown)

    def noted(self, name: str, text: str) -> None:
        self._print(name, text)

    def ended(self, name: str, outcome: str) -> None:
        self._print(name, outcome)

    def _print(self, name: str, text: str) -> None:
        self._console.print(f"{name}: {text}", highlight=False, soft_wrap=True)


def watch(console: Terminal, goals: Goals) -> Lines:
    """Returns a watcher that prints lines; in a notebook, as plain text."""
    return Lines(Terminal(force_jupyter=False) if console.is_jupyter else console, goals)
