"""Remedies for unknown settings: the place of a setting in a config, or colearn's counterpart of a
TRL setting."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, get_origin

from pydantic import BaseModel

from colearn.errors import nearest

from .settings import Config
from .trl_names import TRL_NAMES

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
    """Returns the remedy for an unknown key: colearn's counterpart of a TRL setting, a key of
    `known` that differs in a letter or two, the section to which the key belongs, or otherwise the
    nearest of the keys `known`."""
    known = list(known)
    twin = difflib.get_close_matches(key, known, n=1, cutoff=_TWIN)
    if twin and key not in TRL_NAMES:
        return f"did you mean '{twin[0]}'?"
    return elsewhere(key, "each." if "sizes" in known else "") or nearest(key, known)


def elsewhere(key: str, above: str = "") -> str | None:
    """Returns the remedy for the unknown setting `key`: colearn's counterpart if `key` is a TRL
    setting, or the places where a config has a setting of this name. Returns None if there is no
    counterpart and no place. `above` is a prefix of each dotted key."""
    if key in TRL_NAMES:
        counterpart = TRL_NAMES[key]
        return _counterpart(
            key, " and ".join(f"{above}{path}" for path in counterpart.keys), counterpart.note
        )
    return _places_of(key, f"'{above}{{}}'".format)


def elsewhere_in_python(key: str) -> str | None:
    """Returns the same remedy as `elsewhere`, but names arguments of `colearn.train` instead of
    dotted keys."""
    if key in TRL_NAMES:
        counterpart = TRL_NAMES[key]
        if counterpart.argument:
            return _counterpart(key, counterpart.argument, "")
        return _counterpart(key, " and ".join(map(as_argument, counterpart.keys)), counterpart.note)
    if key in OF_ALGORITHMS:
        return f"did you mean {as_argument(f'algorithm.{key}')}?"
    return _places_of(key, as_argument)


def _counterpart(key: str, place: str, note: str) -> str:
    if not place:
        return f"TRL's {key}: {note}"
    return f"TRL's {key} is {place} here{f' ({note})' if note else ''}"


def _places_of(key: str, spell: Callable[[str], str]) -> str | None:
    places = _places().get(key, ())
    if not 0 < len(places) <= _MOST:
        return None
    return f"did you mean {' or '.join(map(spell, places))}?"


_REQUIRED = {
    "task": '"name": ..., ',
    "algorithm": '"name": ..., ',
    "models": '"path": ..., ',
    "critic": '"path": ..., ',
}


def as_argument(key: str) -> str:
    """The argument of `colearn.train` that sets a dotted key, such as `train={"epochs": ...}`."""
    if key == "run.seed":
        return "seed=..."
    section, *below = key.replace("models.*.", "models.").split(".")
    value = "..."
    for number, name in enumerate(reversed(below), 1):
        required = _REQUIRED.get(section, "") if number == len(below) and name != "path" else ""
        value = f'{{{required}"{name}": {value}}}'
    return f"{section}={value}"


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
