"""Optional interface: steps that read tokens."""

from __future__ import annotations

from .option import TaskOption


class ReadsActions(TaskOption):
    """A task that reads not only the text of an action but also its tokens and
    log-probabilities."""

    reads_actions: bool = False
    """Whether rollouts pass a `SampledAction` for each agent to `step`, with tokens and
    log-probabilities. Task checks pass strings instead; `SampledAction.of` accepts a string or a
    `SampledAction`."""
