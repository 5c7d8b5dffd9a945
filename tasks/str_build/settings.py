"""Validates the settings of StrBuild."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from colearn.errors import ConfigError

from ..checks import check_choice, check_finite, check_whole
from .font import unknown_characters

CHOICES = {
    "variant": ("paper", "comlrl"),
    "font": ("large", "small"),
    "prompt": ("full", "compact"),
}


def check_settings(
    *,
    choices: Mapping[str, str],
    horizon: int,
    agents: int,
    strings: Mapping[str, Sequence[str]],
    max_commands: int | None,
    reward_shift: float,
) -> None:
    """Raise ConfigError at the first invalid setting."""
    for field, value in choices.items():
        check_choice(field, value, CHOICES[field])
    check_whole("horizon", horizon, 1)
    check_whole("agents", agents, 1)
    for field, texts in strings.items():
        _strings(field, texts)
    if max_commands is not None:
        check_whole("max_commands", max_commands, 1)
        if max_commands < agents:
            raise ConfigError(
                f"task.max_commands: {max_commands} leaves no command for some of {agents} agents; "
                f"set it to {agents} or more"
            )
    check_finite("reward_shift", reward_shift, "the default is -2")


def _strings(field: str, texts: Sequence[str]) -> None:
    if isinstance(texts, str) or not isinstance(texts, Sequence):
        raise ConfigError(
            f"task.{field}: must be a list of strings, got {texts!r}; write [{texts}]"
        )
    if not texts:
        raise ConfigError(f"task.{field}: is empty; name at least one string")
    for text in texts:
        if not isinstance(text, str):
            raise ConfigError(f"task.{field}: {text!r} is no string; put it in quotes")
        if not text or unknown_characters(text):
            raise ConfigError(f"task.{field}: {text!r} cannot be drawn; use letters A-Z and digits")
