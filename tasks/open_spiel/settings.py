"""Validates the settings of OpenSpiel's games."""

from __future__ import annotations

from collections.abc import Sequence

from colearn.errors import ConfigError

from ..checks import check_choice, check_finite
from .phrasings import FORMS


def chosen_games(field: str, games: str | Sequence[str]) -> tuple[str, ...]:
    """The names of the games from a setting that holds one or several."""
    names = (games,) if isinstance(games, str) else tuple(games)
    if not names or not all(isinstance(name, str) and name for name in names):
        raise ConfigError(f"task.{field}: must name one game or several, got {games!r}")
    if len(set(names)) < len(names):
        raise ConfigError(f"task.{field}: names a game twice; name each once")
    return names


def check_settings(
    prompt: str, payoff_span: float | None, valid_reward: float, invalid_penalty: float
) -> None:
    """Raise ConfigError at the first invalid setting."""
    check_choice("prompt", prompt, FORMS)
    if payoff_span is not None:
        check_finite("payoff_span", payoff_span, "leave it out for the games' own payoffs", above=0)
    check_finite("valid_reward", valid_reward, least=0)
    check_finite("invalid_penalty", invalid_penalty, least=0)
