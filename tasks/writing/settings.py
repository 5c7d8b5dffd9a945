"""Validates the settings of the writing tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from colearn.errors import ConfigError, nearest

from ..rows import SUFFIXES

CHOICES = {"variant": ("paper", "comlrl"), "prompt": ("full", "compact")}
DATA = ("packaged", "generated", "hub")


def check_settings(
    *,
    choices: Mapping[str, str],
    data: str,
    field: str | None,
    words: Sequence[int] | None,
) -> None:
    """Raise ConfigError at the first invalid setting."""
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
    if field is not None and (not isinstance(field, str) or not field):
        raise ConfigError(f"task.field: must be the name of a column, got {field!r}")
    if field is not None and data in ("packaged", "generated"):
        raise ConfigError(
            f"task.field: '{data}' data has no columns; leave it out or set task.data to hub or "
            "to a .jsonl file"
        )
    if words is not None:
        _bounds(words)


def _bounds(words: Sequence[int]) -> None:
    integers = (
        isinstance(words, Sequence)
        and len(words) == 2
        and all(isinstance(bound, int) and not isinstance(bound, bool) for bound in words)
    )
    if not integers or not 1 <= words[0] <= words[1]:
        raise ConfigError(
            f"task.words: must be the fewest and the most words of an answer, got {words!r}; "
            "write [8, 256]"
        )
