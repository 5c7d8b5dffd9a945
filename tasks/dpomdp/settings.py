"""Validates the settings of TextDecPOMDP: problem, horizon and numbers."""

from __future__ import annotations

import math
from pathlib import Path

from colearn.errors import ConfigError, nearest

HORIZONS = {
    "climbing": 1,
    "dec_tiger": 3,
    "lock": 6,
    "penalty": 1,
    "two_step": 2,
    "vault": 6,
}
"""The shipped problems, with the usual number of turns."""

_FOLDER = Path(__file__).parent / "problems"


def choose_problem(problem: str | None, file: str | None) -> tuple[str, Path]:
    """The problem's name and its file; dec_tiger where nothing is chosen."""
    if problem is not None and file is not None:
        raise ConfigError(
            f"task.problem, task.file: both are set ('{problem}', '{file}'); set one of the two"
        )
    if file is not None:
        if not isinstance(file, (str, Path)):
            raise ConfigError(f"task.file: must be a path, got {file!r}; put it in quotes")
        path = Path(file).expanduser()
        return path.stem, path
    name = "dec_tiger" if problem is None else problem
    if name not in HORIZONS:
        raise ConfigError(
            f"task.problem: unknown problem '{name}'; {nearest(str(name), HORIZONS)}; "
            "task.file takes a file of your own"
        )
    return name, _FOLDER / f"{name}.dpomdp"


def choose_horizon(horizon: int | None, name: str, *, shipped: bool) -> int:
    """The number of turns, from the setting or as is usual for a shipped problem."""
    if horizon is None and not shipped:
        raise ConfigError("task.horizon: missing; a file of your own has no usual one, set it")
    if horizon is None:
        return HORIZONS[name]
    if isinstance(horizon, bool) or not isinstance(horizon, int) or horizon < 1:
        raise ConfigError(
            f"task.horizon: must be a whole number, got {horizon!r}; set it to 1 or more"
        )
    return horizon


def check_numbers(penalty: float | None, reward_scale: float) -> None:
    """Raise ConfigError for a penalty or a scale that no reward can have."""
    if penalty is not None and not _finite(penalty):
        raise ConfigError(
            f"task.penalty: must be a finite number, got {penalty!r}; leave it out for the worst "
            "reward of all turns left"
        )
    if not _finite(reward_scale) or reward_scale <= 0:
        raise ConfigError(
            f"task.reward_scale: must be a number above 0, got {reward_scale!r}; the default is 1"
        )


def _finite(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return math.isfinite(value)
