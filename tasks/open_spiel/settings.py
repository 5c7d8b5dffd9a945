"""Validates the settings of OpenSpiel's games."""

from __future__ import annotations

import math
from collections.abc import Sequence

from colearn.errors import ConfigError, nearest

from .phrasings import FORMS


def chosen_games(field: str, games: str | Sequence[str]) -> tuple[str, ...]:
    """The names, as one or several are given."""
    names = (games,) if isinstance(games, str) else tuple(games)
    if not names or not all(isinstance(name, str) and name for name in names):
        raise ConfigError(f"task.{field}: must name one game or several, got {games!r}")
    if len(set(names)) < len(names):
        raise ConfigError(f"task.{field}: names a game twice; name each once")
    return names


def check_settings(
    prompt: str, payoff_span: float | None, valid_reward: float, invalid_penalty: float
) -> None:
    """Raise ConfigError at the first setting that cannot be played."""
    if prompt not in FORMS:
        raise ConfigError(f"task.prompt: unknown value {prompt!r}; {nearest(str(prompt), FORMS)}")
    if payoff_span is not None and (not _finite(payoff_span) or payoff_span <= 0):
        raise ConfigError(
            f"task.payoff_span: must be a number above 0, got {payoff_span!r}; leave it out for "
            "the games' own payoffs"
        )
    for field, value in (("valid_reward", valid_reward), ("invalid_penalty", invalid_penalty)):
        if not _finite(value) or value < 0:
            raise ConfigError(f"task.{field}: must be a number of 0 or more, got {value!r}")


def _finite(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return math.isfinite(value)
