"""Encodes the texts of a conversation in parts, to the ids that the tokenizer gives the whole.

Some tokenizers write a space in front of every text that they encode, such as those of Llama 2 and
Mistral. The ids of a text therefore depend on whether it begins a conversation.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from colearn.text.token_ids import special_tokens, token_ids

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

START = ""
"""What precedes the first text of a conversation."""
INSIDE = None
"""What precedes a text that continues a sampled text."""
_NEUTRAL = ("\n", "x", ".")
"""Texts that may precede a text without being joined with it."""


class Part(NamedTuple):
    """A piece of text from the template or from a message. In a message, spellings of special
    tokens other than tags such as `<answer>` are encoded as plain text."""

    text: str
    said: bool = False


class Encoder:
    """Encodes texts with a tokenizer. `cache` is the maximum number of texts whose ids are kept."""

    quoted: tuple[str, ...]
    """The special tokens whose spelling in a message is plain text."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, *, cache: int = 4096) -> None:
        self._tokenizer = tokenizer
        self.quoted = tuple(special_tokens(tokenizer).values())
        self._cached = lru_cache(maxsize=cache)(self._encode)
        self._prefixes = self._behind("0", "\n") not in (None, self.ids("0"))
        """Whether the tokenizer writes a space in front of a text."""

    def ids(self, text: str) -> tuple[int, ...]:
        """The ids of a text that begins a conversation."""
        return self._cached(text)

    def follow(self, text: str, before: str | None, *, special: bool = True) -> tuple[int, ...]:
        """The ids of a text behind the text `before`, or behind `START` or `INSIDE`. A token never
        holds parts of both texts. `special`: whether a spelling of a special token becomes it."""
        if before == START:
            return self._cached(text, special)
        if before is not INSIDE:
            tokens = self._behind(text, before, special)
            if tokens is not None:
                return tokens
        if self._prefixes:
            for neutral in _NEUTRAL:
                tokens = self._behind(text, neutral, special)
                if tokens is not None:
                    return tokens
        return self._cached(text, special)

    def joins(self, before: str, text: str) -> bool:
        """Whether a token of the two texts holds parts of both."""
        return self._behind(text, before) is None

    def encode(self, parts: Sequence[Part], before: str | None = START) -> tuple[int, ...]:
        """The ids of consecutive texts behind `before`. A message text that spells a token of
        `quoted` is encoded as plain text."""
        tokens: tuple[int, ...] = ()
        joined = ""
        for part in parts:
            if part.said and self.spells_quoted(part.text):
                if joined:
                    tokens, before = tokens + self.follow(joined, before), INSIDE
                tokens += self.follow(part.text, before, special=False)
                joined, before = "", INSIDE
            else:
                joined += part.text
        return tokens + self.follow(joined, before)

    def spells_quoted(self, text: str) -> bool:
        """Whether a text spells a token of `quoted`."""
        return any(token in text for token in self.quoted)

    def _behind(self, text: str, before: str, special: bool = True) -> tuple[int, ...] | None:
        """The ids of a text behind another; None if a token holds parts of both."""
        first = self._cached(before)
        both = self._cached(before + text, special)
        return both[len(first) :] if both[: len(first)] == first else None

    def _encode(self, text: str, special: bool = True) -> tuple[int, ...]:
        return token_ids(self._tokenizer, text, special=special)
