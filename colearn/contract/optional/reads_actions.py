"""Optional interface: steps that read tokens."""

from __future__ import annotations

from .option import TaskOption


class ReadsActions(TaskOption):
    """A task that reads not only the text of an action but also its tokens and
    log-probabilities."""

    reads_actions: bool = False
    """Whether rollouts give `step` a `SampledAction` for each agent, with tokens and
    log-probabilities. Task checks pass strings instead; `SampledAction.of` accepts both forms."""
