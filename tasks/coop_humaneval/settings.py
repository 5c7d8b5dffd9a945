"""Validates the settings of CoopHumanEval."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from colearn.errors import ConfigError, nearest
from colearn.sandbox import Limits

from ..rows import SUFFIXES

CHOICES = {
    "variant": ("paper", "comlrl"),
    "feedback": ("diagnostics", "score"),
    "sandbox": ("auto", "bwrap", "namespaces", "unsafe"),
    "prompt": ("full", "compact"),
}
DATA = ("packaged", "hub", "humaneval", "mbpp")


def check_settings(
    *,
    choices: Mapping[str, str],
    data: str,
    horizon: int,
    feedback_tests: int | None,
    reward_shift: float,
) -> None:
    """Raise ConfigError at the first setting that cannot be played."""
    for name, value in choices.items():
        if value not in CHOICES[name]:
            hint = nearest(str(value), CHOICES[name])
            raise ConfigError(f"task.{name}: unknown value {value!r}; {hint}")
    if not isinstance(data, str):
        raise ConfigError(f"task.data: must be one of {', '.join(DATA)} or a path, got {data!r}")
    if data not in DATA and Path(data).suffix not in SUFFIXES:
        raise ConfigError(
            f"task.data: unknown value {data!r}; {nearest(data, DATA)} or the path of a .jsonl or "
            ".csv file"
        )
    _whole("horizon", horizon, 1)
    if feedback_tests is not None:
        _whole("feedback_tests", feedback_tests, 0)
    number = isinstance(reward_shift, (int, float)) and not isinstance(reward_shift, bool)
    if not number or not math.isfinite(reward_shift):
        raise ConfigError(
            f"task.reward_shift: must be a finite number, got {reward_shift!r}; the default is -4"
        )


def make_limits(seconds: float, memory_mb: int) -> Limits:
    """The limits of one run, whose fields are named here as the task's settings."""
    try:
        return Limits(seconds=seconds, memory_mb=memory_mb)
    except ConfigError as error:
        raise ConfigError(f"task.{str(error).removeprefix('limits.')}") from None


def _whole(field: str, value: int, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConfigError(
            f"task.{field}: must be a whole number, got {value!r}; set it to {least} or more"
        )
