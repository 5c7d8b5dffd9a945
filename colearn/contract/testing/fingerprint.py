"""Converts values to nested tuples, so that values with equal content compare equal.

Comparison with `==` does not suffice, because `==` compares plain classes by identity and returns
an array for arrays. Comparing pickles does not suffice either. The pickles of equal values differ
if one value refers twice to the same string object and the other holds two equal strings.
"""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Mapping, Set
from types import FunctionType, NoneType
from typing import Any

Fingerprint = tuple[Any, ...]

_PLAIN = (NoneType, bool, int, float, complex, str, bytes)


def fingerprint(value: object) -> Fingerprint:
    """Returns a fingerprint of a value; fingerprints are compared with `==`. Attributes of a
    dataclass that are not fields, such as caches, are ignored. Order matters, except in mappings
    and sets. NaN equals NaN. For a value that cannot be pickled, only the type is compared."""
    return _of(value, ())


def _of(value: object, above: tuple[int, ...]) -> Fingerprint:
    kind = type(value)
    name = f"{kind.__module__}.{kind.__qualname__}"
    if kind in _PLAIN:
        return name, repr(value)
    if id(value) in above:
        return name, "cycle", above.index(id(value))
    above = (*above, id(value))
    if isinstance(value, (type, FunctionType)):
        return name, value.__module__, value.__qualname__
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        return name, *((field.name, _of(getattr(value, field.name), above)) for field in fields)
    if isinstance(value, Mapping):
        pairs = ((_of(key, above), _of(entry, above)) for key, entry in value.items())
        return name, *sorted(pairs, key=repr)
    if isinstance(value, Set):
        return name, *sorted((_of(entry, above) for entry in value), key=repr)
    if isinstance(value, (list, tuple)):
        return name, *(_of(entry, above) for entry in value)
    try:
        reduced = value.__reduce_ex__(4)
    except (TypeError, pickle.PicklingError):
        return name, "opaque"
    if isinstance(reduced, str):
        return name, reduced
    parts = (list(part) if hasattr(part, "__next__") else part for part in reduced)
    return name, *(_of(part, above) for part in parts)
