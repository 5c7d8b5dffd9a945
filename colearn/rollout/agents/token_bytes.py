"""Decodes an answer token by token: its text in whole characters, and the bytes of each token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class TextDecoder(Protocol):
    """The methods of a chat format that decode an answer in parts."""

    def decode(self, tokens: tuple[int, ...]) -> str:
        """Return the text of sampled tokens."""

    def context(self, before: Sequence[int], tokens: Sequence[int]) -> tuple[int, ...]:
        """Return the tokens that `decode` needs in front of what follows `tokens`. `before` are
        those in front of `tokens`."""

    def is_open(self, tokens: Sequence[int], text: str) -> bool:
        """Whether a following token may change the text of these tokens."""

    def spelled(self, token: int) -> bytes:
        """Return the bytes of a token's own spelling."""


class WholeCharacters:
    """Decodes an answer token by token. Each step decodes only the tokens after the last whole
    character, with those that they depend on."""

    def __init__(self, chat: TextDecoder) -> None:
        self._chat = chat
        self._tokens: list[int] = []
        self._before = self._read = 0  # decoded together: tokens[before:]; settled: up to read
        self._context: tuple[int, ...] = ()  # in front of tokens[before:]

    @property
    def tokens(self) -> tuple[int, ...]:
        return tuple(self._tokens)

    def push(self, token: int) -> tuple[str, bool]:
        """Append a token. Returns the text after the last whole character, and whether this text
        is final."""
        self._tokens.append(token)
        settled = self._tokens[self._before : self._read]
        after = self._tokens[self._before :]
        old = self._chat.decode((*self._context, *settled))
        new = self._chat.decode((*self._context, *after))
        tail = new[len(old) :]
        if self._chat.is_open(after, new):
            return tail, False
        if tail:  # the next step needs the tokens of the last text in front of it
            self._context = self._chat.context(self._context, settled)
            self._before = self._read
        self._read = len(self._tokens)
        return tail, True


class TokenBytes:
    """Collects the bytes that each token of an answer contributes to the answer's text. Where
    several tokens spell one character, each has its own bytes. The bytes of all tokens, joined,
    are the text in UTF-8; a replacement character for bytes that are no character counts as the
    text of these bytes."""

    def __init__(self, chat: TextDecoder) -> None:
        self._chat, self._characters = chat, WholeCharacters(chat)
        self._open: list[tuple[int, str]] = []
        """Tokens whose text is not final, each with the text of these tokens up to it."""
        self.pieces: list[bytes] = []
        """The bytes of each token whose text is final."""

    def push(self, token: int) -> None:
        """Append a token."""
        tail, whole = self._characters.push(token)
        self._open.append((token, tail))
        if whole:
            self._settle(tail)

    def finish(self) -> None:
        """Settle the last tokens."""
        text = self._chat.decode(self._characters.tokens)
        given = b"".join(self.pieces).decode()
        self._settle(text[len(given) :])

    def _settle(self, text: str) -> None:
        """Divide a text between the tokens whose text is not final."""
        ended, waiting = 0, []
        for number, (token, tail) in enumerate(self._open):
            waiting.append(token)
            is_last = number == len(self._open) - 1
            end = len(text) if is_last else max(ended, _common(tail, text))
            if end > ended or is_last:
                self.pieces += self._divide(text[ended:end].encode(), waiting)
                ended, waiting = end, []
        self._open = []

    def _divide(self, data: bytes, tokens: Sequence[int]) -> list[bytes]:
        spelled = [self._chat.spelled(token) for token in tokens]
        if b"".join(spelled) == data:
            return spelled
        return [*[b""] * (len(tokens) - 1), data]


def token_bytes(chat: TextDecoder, tokens: Sequence[int]) -> list[bytes]:
    """Return the bytes that each token contributes to the text of an answer."""
    growing = TokenBytes(chat)
    for token in tokens:
        growing.push(token)
    growing.finish()
    return growing.pieces


def _common(first: str, second: str) -> int:
    """Return the length of the common prefix of two texts."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(first), len(second)))
