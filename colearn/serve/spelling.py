"""Text and bytes of single tokens, for the `logprobs` field of an answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from transformers.convert_slow_tokenizer import bytes_to_unicode

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_BYTE = re.compile(r"<0x([0-9A-F]{2})>")


class Spelling:
    """Maps token ids to text and bytes.

    If a token holds only part of a character, the token's bytes are exact for a vocabulary that is
    byte-level or has byte fallback, and null for any other. A token that the answer omits, for
    example an end token, has no bytes. The concatenated bytes therefore equal the answer.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self._tokenizer = tokenizer
        self._bytes = {letter: byte for byte, letter in bytes_to_unicode().items()}
        """The byte for each letter of byte-level vocabularies."""
        self._spell = lru_cache(maxsize=65536)(self._spelt)

    def entry(self, token: int, logprob: float, top: Sequence[tuple[int, float]]) -> dict[str, Any]:
        """Returns one element of OpenAI's `logprobs.content`."""
        likeliest = [self._one(number, value) for number, value in top]
        return {**self._one(token, logprob), "top_logprobs": likeliest}

    def _one(self, token: int, logprob: float) -> dict[str, Any]:
        text, raw = self._spell(token)
        return {"token": text, "logprob": logprob, "bytes": None if raw is None else list(raw)}

    def _spelt(self, token: int) -> tuple[str, bytes | None]:
        text = self._tokenizer.decode([token], skip_special_tokens=False)
        if not self._tokenizer.decode([token], skip_special_tokens=True):
            return text, b""
        if "\ufffd" not in text:
            return text, text.encode()
        piece = self._tokenizer.convert_ids_to_tokens(token)
        byte = _BYTE.fullmatch(piece)
        if byte:
            return text, bytes.fromhex(byte[1])
        if all(letter in self._bytes for letter in piece):
            return text, bytes(self._bytes[letter] for letter in piece)
        return text, None
