"""Validates the settings of CoopHumanEval."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from colearn.errors import ConfigError, nearest
from colearn.programs.sandbox import Limits

from ..checks import check_choice, check_finite, check_whole
from ..rows import SUFFIXES

CHOICES = {
    "variant": ("paper", "comlrl"),
    "sandbox": ("bwrap", "unsafe"),
    "prompt": ("full", "compact"),
}
DATA = ("packaged", "hub", "humaneval", "mbpp")


def check_settings(
    *,
    choices: Mapping[str, str],
    data: str,
    horizon: int,
    reward_shift: float,
) -> None:
    """Raise ConfigError at the first invalid setting."""
    for name, value in choices.items():
        check_choice(name, value, CHOICES[name])
    if not isinstance(data, str):
        raise ConfigError(f"task.data: must be one of {', '.join(DATA)} or a path, got {data!r}")
    if data not in DATA and Path(data).suffix not in SUFFIXES:
        raise ConfigError(
            f"task.data: unknown value {data!r}; {nearest(data, DATA)} or the path of a .jsonl or "
            ".csv file"
        )
    check_whole("horizon", horizon, 1)
    check_finite("reward_shift", reward_shift, "the default is -4")


def make_limits(seconds: float) -> Limits:
    """The limits of one program run. Errors name the task's settings."""
    try:
        return Limits(seconds=seconds)
    except ConfigError as error:
        raise ConfigError(f"task.{str(error).removeprefix('limits.')}") from None
