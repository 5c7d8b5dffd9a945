"""Setting checks shared by tasks; each error names the setting and the remedy."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from colearn.errors import ConfigError, nearest

SPLITS = ("train", "test")


def check_choice(field: str, value: object, known: Iterable[str]) -> None:
    """Checks a choice. Errors: ConfigError if the value is not in `known`."""
    known = tuple(known)
    if value not in known:
        raise ConfigError(f"task.{field}: unknown value {value!r}; {nearest(str(value), known)}")


def check_split(split: str) -> None:
    """Errors: ConfigError for a split other than 'train' and 'test'."""
    if split not in SPLITS:
        raise ConfigError(f"task.items: unknown split '{split}'; {nearest(split, SPLITS)}")


def check_unset(values: Mapping[str, object], place: str) -> None:
    """Errors: ConfigError for a setting that was set, so is not None, and has no effect at `place`,
    for example `without task.path`."""
    for field, value in values.items():
        if value is not None:
            raise ConfigError(f"task.{field}: has no effect {place}; leave it out")


def check_whole(field: str, value: object, least: int, most: int | None = None) -> None:
    """Errors: ConfigError for a value that is not a whole number within the bounds."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or value < least or (most is not None and value > most):  # type: ignore[operator]
        bounds = f"{least} or more" if most is None else f"{least} to {most}"
        raise ConfigError(
            f"task.{field}: must be a whole number, got {value!r}; set it to {bounds}"
        )


def check_number(field: str, value: object, least: float, most: float) -> None:
    """Errors: ConfigError for a value that is not a number within the bounds, both included."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not least <= value <= most:  # type: ignore[operator]
        raise ConfigError(
            f"task.{field}: must be a number, got {value!r}; set it to {least:g} to {most:g}"
        )


def check_finite(
    field: str,
    value: object,
    remedy: str | None = None,
    *,
    least: float | None = None,
    above: float | None = None,
) -> None:
    """Errors: ConfigError for a value that is not a finite number, is below `least`, or is not
    above `above`."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if (
        number
        and math.isfinite(value)  # type: ignore[arg-type]
        and (least is None or value >= least)  # type: ignore[operator]
        and (above is None or value > above)  # type: ignore[operator]
    ):
        return
    requirement = "a finite number"
    if least is not None:
        requirement = f"a number of {least:g} or more"
    if above is not None:
        requirement = f"a number above {above:g}"
    suffix = "" if remedy is None else f"; {remedy}"
    raise ConfigError(f"task.{field}: must be {requirement}, got {value!r}{suffix}")
