"""Display of progress for the place where a program runs: terminal, notebook or file."""

from __future__ import annotations

from contextlib import AbstractContextManager
from importlib.util import find_spec

from rich.console import Console

from .progress import Bars, Goals, Lines, Watcher


def watch(console: Console, goals: Goals) -> AbstractContextManager[Watcher]:
    """Bars on a terminal, widgets in a notebook that has ipywidgets, lines of text elsewhere."""
    if console.is_jupyter:
        if find_spec("ipywidgets") is None:
            return Lines(Console(force_jupyter=False), goals)
        from .widgets import Widgets

        return Widgets(goals)
    return Bars(console, goals) if console.is_terminal else Lines(console, goals)
