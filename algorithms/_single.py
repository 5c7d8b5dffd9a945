"""Team-size check of the single-agent algorithms."""

from __future__ import annotations

from collections.abc import Sequence

from colearn.errors import ConfigError


def require_single(agents: Sequence[str], name: str, instead: str) -> None:
    """Raise ConfigError for a task with several agents."""
    if len(agents) > 1:
        raise ConfigError(
            f"algorithm: {name} trains one agent, the task has {len(agents)}; set task.agents to 1 "
            f"or use {instead}"
        )
