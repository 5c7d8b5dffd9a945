"""Computes the digest of a program's rows, by which a resumed run recognises them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from colearn.errors import ConfigError

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def rows_digest(rows: Sequence[Any], field: str) -> str:
    """Returns the SHA-256 digest of rows, equal for equal rows in every process.

    Arrays, tensors and images count with all their values. Any other object that JSON does not know
    counts as its `repr` without addresses.

    Errors: ConfigError for a column whose name is no text, and for a value that holds itself.
    """
    for number, row in enumerate(rows, start=1):
        if isinstance(row, Mapping):
            for name in row:
                if not isinstance(name, str):
                    raise ConfigError(
                        f"{field}: row {number} has a column {name!r:.60}; name columns by texts"
                    )
    try:
        text = json.dumps(_with_text_keys(rows), sort_keys=True, default=_described)
    except (ValueError, RecursionError):
        raise ConfigError(f"{field}: a value of the rows holds itself; leave it out") from None
    return hashlib.sha256(text.encode()).hexdigest()


def _with_text_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key if isinstance(key, str) else repr(key): _with_text_keys(entry)
            for key, entry in value.items()
        }
    return [_with_text_keys(entry) for entry in value] if isinstance(value, list | tuple) else value


def _described(value: Any) -> Any:
    if isinstance(value, set | frozenset):
        return sorted(map(repr, value))
    if hasattr(value, "__array__") or hasattr(value, "__array_interface__"):
        array = _array(value)
        if not array.dtype.hasobject:
            data = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
            return [str(array.dtype), array.shape, data]
        return [array.shape, [_with_text_keys(element) for element in array.ravel().tolist()]]
    return _ADDRESS.sub("", repr(value))


def _array(value: Any) -> np.ndarray[Any, Any]:
    if not hasattr(value, "detach"):
        return np.asarray(value)
    tensor = value.detach().cpu()
    try:
        return np.asarray(tensor)
    except TypeError:  # bfloat16, which numpy does not know
        return np.asarray(tensor.float())
