"""Optional interface: steps that read tokens."""

from __future__ import annotations

from .option import TaskOption


class ReadsActions(TaskOption):
    """A task that reads more of an action than its text."""

    reads_actions: bool = False
    """Whether `step` receives `Said` texts, which carry the sampled action with its tokens and
    log-probabilities."""
