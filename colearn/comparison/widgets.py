"""Progress of runs as notebook widgets."""

from __future__ import annotations

import time
from html import escape

import ipywidgets
from IPython.display import display

from colearn.record.meter import Status

from .progress import Clock, Goals, RemainingTime, status_text


class Widgets:
    """Shows one bar per run, as on a terminal, with the environment steps out of the budget, and
    `status_text`."""

    def __init__(self, goals: Goals, clock: Clock = time.monotonic) -> None:
        self._goals = goals
        self._remaining = {name: RemainingTime(goal, clock) for name, goal in goals.items()}
        self._bars = {
            name: ipywidgets.FloatProgress(min=0, max=goal.environment_steps)
            for name, goal in goals.items()
        }
        self._texts = {name: ipywidgets.HTML("waiting") for name in goals}
        rows = [
            ipywidgets.HBox([ipywidgets.HTML(escape(name)), self._bars[name], self._texts[name]])
            for name in goals
        ]
        self.box = ipywidgets.VBox(rows)

    def __enter__(self) -> Widgets:
        display(self.box)
        return self

    def __exit__(self, *exception: object) -> None:
        return None

    def started(self, name: str, how: str) -> None:
        self.noted(name, how)

    def advanced(self, name: str, status: Status) -> None:
        goal = self._goals[name]
        self._bars[name].value = status.environment_steps
        steps = f"{status.environment_steps}/{goal.environment_steps} steps"
        latest = status_text(status, goal.metric, self._remaining[name].left(status))
        self.noted(name, f"{steps}, {latest}" if latest else steps)

    def noted(self, name: str, text: str) -> None:
        self._texts[name].value = escape(text)

    def ended(self, name: str, outcome: str) -> None:
        failed = outcome.startswith("failed")
        self._bars[name].bar_style = "danger" if failed else "success"
        shown = self._texts[name].value
        self._texts[name].value = escape(outcome) if failed else f"{shown}, {escape(outcome)}"
