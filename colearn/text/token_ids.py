"""Encodes texts with a tokenizer, which several threads may share."""

from __future__ import annotations

from threading import Lock
from typing import Any

_ENCODING = Lock()
"""A tokenizer stores in itself whether it splits special tokens, for all threads."""


def token_ids(tokenizer: Any, text: str, *, special: bool = True) -> tuple[int, ...]:
    """Return the token ids of a text, without tokens that the tokenizer adds. `special`: whether a
    spelling of a special token becomes that token; otherwise it is plain text."""
    if not text:
        return ()
    with _ENCODING:
        encoded = tokenizer(text, add_special_tokens=False, split_special_tokens=not special)
    return tuple(encoded["input_ids"])
