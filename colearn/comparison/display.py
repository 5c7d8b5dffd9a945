"""Selects the progress display for a terminal, notebook or file."""

from __future__ import annotations

from contextlib import AbstractContextManager
from importlib.util import find_spec

from rich.console import Console

from .progress import Bars, Goals, Lines, Watcher


def watch(console: Console, goals: Goals) -> AbstractContextManager[Watcher]:
    """Returns a watcher that shows bars on a terminal, widgets in a notebook if ipywidgets is
    installed, and lines of text elsewhere."""
    if console.is_jupyter:
        if find_spec("ipywidgets") is None:
            return Lines(Console(force_jupyter=False), goals)
        from .widgets import Widgets

        return Widgets(goals)
    return Bars(console, goals) if console.is_terminal else Lines(console, goals)
