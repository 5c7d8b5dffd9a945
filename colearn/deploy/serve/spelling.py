"""The `logprobs` field of an answer: text and bytes of each token, of which the bytes, joined, are
the answer's content."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from colearn.deploy.client.protocol.logprobs import logprob_entry
from colearn.engines.job import Choice, Top
from colearn.rollout.agents import ChatFormat
from colearn.rollout.agents.token_bytes import token_bytes
from colearn.text.spans import Span, shares

_ANCHOR = "x"


class Spelling:
    """Converts the tokens of answers to elements of OpenAI's `logprobs.content`.

    A token's `bytes` are its contribution to the content: none for an end token, for reasoning, for
    a call and behind a stop string. Where several tokens spell one character, each has its own
    bytes.
    """

    def __init__(self, chat: ChatFormat) -> None:
        self.chat = chat
        self._anchor = chat.spell(_ANCHOR)[-1:]
        self._anchored = len(chat.decode(self._anchor))
        self._alternative = lru_cache(maxsize=65536)(self._spell_alternative)

    def whole(self, choice: Choice, text: str, spans: Sequence[Span]) -> list[dict[str, Any]]:
        """Returns the elements of a complete choice. `text` is the choice's text behind the text
        that opened reasoning; `spans` are the parts of `text` that are the content."""
        opened = text.removesuffix(choice.text).encode()
        pieces = token_bytes(self.chat, choice.tokens)
        _, *written = shares([opened, *pieces], text, spans)
        tops = choice.top or [()] * len(choice.tokens)
        tokens = zip(choice.tokens, choice.logprobs, tops, pieces, written, strict=True)
        return [self.entry(*token, first=not number) for number, token in enumerate(tokens)]

    def entry(
        self, token: int, logprob: float, top: Top, piece: bytes, share: bytes, *, first: bool
    ) -> dict[str, Any]:
        """Returns one element. `piece` are the token's bytes in the sampled text, of which `share`
        are part of the content. `first`: whether the token begins the answer."""
        sampled = (piece.decode("utf-8", "replace") or self.chat.name(token), share)
        alternatives = [
            (*(sampled if number == token else self._alternative(number, first)), value)
            for number, value in top
        ]
        return logprob_entry(*sampled, logprob, alternatives)

    def _spell_alternative(self, token: int, first: bool) -> tuple[str, bytes]:
        """Text and bytes of a token that was not sampled."""
        before, length = ((), 0) if first else (self._anchor, self._anchored)
        text = self.chat.decode((*before, token))[length:]
        if not text:
            return self.chat.name(token), b""
        return text, self.chat.spelled(token) if "\ufffd" in text else text.encode()
