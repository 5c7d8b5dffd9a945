"""Checks of an agent's history against its model's maximum length."""

from __future__ import annotations

from colearn.errors import ConfigError, TaskError


def check_length(agent: str, tokens: int, positions: int | None) -> None:
    """Check a history's length. Errors: TaskError if the history leaves no room for an answer
    within the model's maximum length."""
    if positions is not None and tokens >= positions:
        raise TaskError(
            f"task.observe: agent '{agent}' was given {tokens} tokens, and its model reads "
            f"{positions}; show less, or name a model with a longer context"
        )


def overlong(agent: str, tokens: int, positions: int) -> ConfigError:
    """Returns the error for a history that leaves no room for an answer within the model's maximum
    length."""
    return ConfigError(
        f"agents.{agent}.overflow: a history of {tokens} tokens leaves no room for an answer in "
        f"its model, which reads {positions}; show less, play fewer turns, name a model with a "
        "longer context, or set truncate"
    )
