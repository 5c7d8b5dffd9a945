"""Validates the settings of TextDecPOMDP: problem, horizon and numbers."""

from __future__ import annotations

from pathlib import Path

from colearn.errors import ConfigError, nearest

from ..checks import check_finite, check_whole

HORIZONS = {
    "climbing": 1,
    "dec_tiger": 3,
    "lock": 6,
    "penalty": 1,
    "two_step": 2,
    "vault": 6,
}
"""The shipped problems, with their default number of turns."""

_FOLDER = Path(__file__).parent / "problems"


def choose_problem(problem: str | None, file: str | None) -> tuple[str, Path]:
    """The problem's name and its file; dec_tiger by default."""
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
    """The number of turns, from the setting or the default of a shipped problem."""
    if horizon is None and not shipped:
        raise ConfigError("task.horizon: missing; a problem from a file has no default; set it")
    if horizon is None:
        return HORIZONS[name]
    check_whole("horizon", horizon, 1)
    return horizon


def check_numbers(penalty: float | None, reward_scale: float) -> None:
    """Raise ConfigError for an invalid penalty or scale."""
    if penalty is not None:
        check_finite("penalty", penalty, "leave it out for the worst reward of all turns left")
    check_finite("reward_scale", reward_scale, "the default is 1", above=0)
