"""Decodes sampled tokens to the text of an answer. The tokens that separate messages are omitted;
other special tokens, such as tags of tools and answers, are part of the text."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import cache
from typing import TYPE_CHECKING

from colearn.text.reasoning import TOKENS
from colearn.text.token_ids import special_tokens, token_ids

from .channels import read_channels

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_NAMED = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")
_HALF = "\ufffd"
"""Replacement character that a decoder writes for an incomplete character."""
_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
_TAG = re.compile(r"<(/?)([A-Za-z][\w.:-]*)>")


class AnswerDecoder:
    """Decodes the tokens of one agent's answers.

    `template` is the chat template's source. `boundaries` are the texts that the template writes
    around messages. `end_ids` are the tokens that end an answer. Omitted are the tokenizer's named
    special tokens (`bos_token`, `pad_token`, ...), `end_ids`, and the special tokens in
    `boundaries` except pairs of tags such as `<answer>` and `</answer>`.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        template: str | None,
        boundaries: Sequence[str],
        end_ids: Collection[int],
    ) -> None:
        self._tokenizer = tokenizer
        self.channels = read_channels(tokenizer, template)
        special = special_tokens(tokenizer)
        names = set(special.values())
        written = {token for text in boundaries for token in token_ids(tokenizer, text)}
        named = [getattr(tokenizer, f"{name}_token_id", None) for name in _NAMED]
        markers = {
            token
            for token in written & special.keys()
            if special[token] not in TOKENS and not _is_tag(special[token], names)
        }
        self.omitted: frozenset[int] = frozenset(
            (*end_ids, *markers, *(token for token in named if token is not None))
        )
        """Token ids that are no part of an answer's text."""
        self.quoted: tuple[str, ...] = tuple(
            name
            for token, name in special.items()
            if token in self.omitted | written or not _is_tag(name, names)
        )
        """The special tokens whose spelling in a message is plain text: all but pairs of tags that
        the template does not write."""
        self.tags: tuple[str, ...] = tuple(
            name
            for token, name in special.items()
            if token not in self.omitted and (_is_tag(name, names) or "tool" in name.lower())
        )
        """The special tokens in answers that other programs look for: pairs of tags, and the marks
        of tool calls."""
        names_of_bytes = [f"<0x{byte:02X}>" for byte in range(256)]
        found = tokenizer.convert_tokens_to_ids(names_of_bytes)
        self._bytes = {
            token
            for token, name in zip(found, names_of_bytes, strict=True)
            if token is not None and tokenizer.convert_ids_to_tokens(token) == name
        }
        """Tokens of single bytes. A decoder reads consecutive ones together: a byte that completes
        no character turns all of them into replacement characters."""
        self._reasoning = {
            token: TOKENS[name]
            for token, name in special.items()
            if name in TOKENS and name != TOKENS[name]
        }
        """The text of reasoning tags by token id, for tags that are not `<think>` themselves."""

    def decode(self, tokens: tuple[int, ...]) -> str:
        """Return the text of sampled tokens. Tokens that open or close reasoning are written as
        `<think>` and `</think>`."""
        if self.channels is not None:
            return self.channels.decode(tokens, self._plain)
        text, begin = "", 0
        for place, token in enumerate(tokens):
            if token in self._reasoning:
                text += self._plain(tokens[begin:place]) + self._reasoning[token]
                begin = place + 1
        return text + self._plain(tokens[begin:])

    def context(self, before: Sequence[int], tokens: Sequence[int]) -> tuple[int, ...]:
        """Return the tokens that `decode` needs in front of what follows `tokens`. `before` are
        those in front of `tokens`."""
        return () if self.channels is None else self.channels.context(before, tokens)

    def is_open(self, tokens: Sequence[int], text: str) -> bool:
        """Whether a following token may change the text of these tokens."""
        last = next((token for token in reversed(tokens) if token not in self.omitted), None)
        return text.endswith(_HALF) or last in self._bytes

    def spelled(self, token: int) -> bytes:
        """Return the bytes of a token's own spelling. They are exact for a byte-level vocabulary
        and for tokens of single bytes."""
        name = None if token in self.omitted else self._tokenizer.convert_ids_to_tokens(token)
        if name is None:
            return b""
        byte = _BYTE.fullmatch(name)
        if byte:
            return bytes.fromhex(byte[1])
        letters = _byte_letters()
        if all(letter in letters for letter in name):
            return bytes(letters[letter] for letter in name)
        return name.encode()

    def _plain(self, tokens: tuple[int, ...]) -> str:
        kept = [token for token in tokens if token not in self.omitted]
        if not kept:
            return ""
        # the clean-up would drop spaces that were sampled
        return self._tokenizer.decode(
            kept, skip_special_tokens=False, clean_up_tokenization_spaces=False
        )


@cache
def _byte_letters() -> dict[str, int]:
    """The byte for each letter of byte-level vocabularies."""
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    return {letter: byte for byte, letter in bytes_to_unicode().items()}


def _is_tag(name: str, names: Collection[str]) -> bool:
    """Whether a special token is one of a pair of tags."""
    tag = _TAG.fullmatch(name)
    return tag is not None and f"<{'' if tag[1] else '/'}{tag[2]}>" in names
