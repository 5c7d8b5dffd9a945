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


def special_tokens(tokenizer: Any) -> dict[int, str]:
    """Return the tokenizer's special tokens by id, with those that only their added token marks as
    special, such as Gemma 3's `<end_of_turn>`."""
    added = {n: str(token) for n, token in tokenizer.added_tokens_decoder.items() if token.special}
    named = zip(tokenizer.all_special_ids, tokenizer.all_special_tokens, strict=True)
    return {**dict(named), **added}
