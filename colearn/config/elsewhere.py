"""Remedies for unknown settings: a similar name, or the place of a setting in a config."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, get_origin

from pydantic import BaseModel

from colearn.errors import nearest

from .settings import Config

_TWIN = 0.85
"""Similarity of a misspelt key to the key that is meant, such as `seed` to `seeds`."""
_MOST = 3
"""Maximum number of places that an error names."""


OF_ALGORITHMS = (
    "rollout",
    "credit",
    "advantage",
    "loss",
    "value_loss",
    "discount",
    "missing_turn_reward",
)
"""Settings of an algorithm; they belong in the section `algorithm`."""


def remedy(key: str, known: Iterable[str]) -> str:
    """Returns the remedy for an unknown key: a key of `known` that differs in a letter or two, the
    places where a config has a setting of this name, or otherwise the nearest of the keys
    `known`."""
    known = list(known)
    if twin := difflib.get_close_matches(key, known, n=1, cutoff=_TWIN):
        return f"did you mean '{twin[0]}'?"
    above = "each." if "sizes" in known else ""
    places = [f"'{above}{place}'" for place in _places().get(key, ())]
    if 0 < len(places) <= _MOST:
        return f"did you mean {' or '.join(places)}?"
    return nearest(key, known)


@cache
def _places() -> Mapping[str, tuple[str, ...]]:
    """Dotted keys by their last part; without `players`, whose settings are those of `agents`."""
    places: dict[str, list[str]] = {}
    for path in _keys(Config, ""):
        if not path.startswith("players."):
            places.setdefault(path.rpartition(".")[2], []).append(path)
    return {key: tuple(paths) for key, paths in places.items()}


def _keys(cls: type[BaseModel], above: str) -> Iterator[str]:
    for name, field in cls.model_fields.items():
        path = f"{above}{field.alias or name}"
        yield path
        below = settings_class(field.annotation)
        if below is not None:
            yield from _keys(
                below, f"{path}.*." if get_origin(field.annotation) is dict else f"{path}."
            )


def settings_class(annotation: Any) -> type[BaseModel] | None:
    """Returns the settings class X in an annotation such as `X | None` or `dict[str, X]`; None if
    the annotation has no settings class."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in getattr(annotation, "__args__", ()):
        inside = settings_class(argument)
        if inside is not None:
            return inside
    return None
