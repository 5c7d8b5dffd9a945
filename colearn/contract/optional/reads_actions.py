"""Optional interface: steps that read tokens."""

from __future__ import annotations

from .option import TaskOption


class ReadsActions(TaskOption):
    """A task that reads more of an action than its text."""

    reads_actions: bool = False
    """Whether rollouts give `step` a `SampledAction` for each agent, with tokens and
    log-probabilities. Checks pass strings; `SampledAction.of` accepts both."""
