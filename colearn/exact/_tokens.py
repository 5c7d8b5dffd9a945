"""Splits a `.dpomdp` file into entries, which are lists of tokens with line numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from colearn.errors import ConfigError, nearest

Numbers = NDArray[np.intp]

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_NOT_FINITE = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE)
_WHOLE = re.compile(r"\d+", re.ASCII)
_LINE_END = re.compile(r"\r\n|\r|\n")
_TOKEN = re.compile(r":|[^\s:]+")
_LONGEST = 60


@dataclass(frozen=True, slots=True)
class Token:
    """One word or colon, with its line number."""

    text: str
    line: int
    """Line number, counted from 1."""

    @property
    def quoted(self) -> str:
        """The token's text for error messages, quoted and cut to a maximum length."""
        return repr(self.text if len(self.text) <= _LONGEST else self.text[:_LONGEST] + "...")

    @property
    def whole(self) -> int | None:
        """The token as a number if its text consists only of digits, else None."""
        if not _WHOLE.fullmatch(self.text):
            return None
        return int(min(float(self.text), 1e12))

    @property
    def numeric(self) -> bool:
        return _NUMBER.fullmatch(self.text) is not None


@dataclass(frozen=True, slots=True)
class Entry:
    """A `key:` and the tokens after it, up to the next key."""

    file: str
    key: str
    line: int
    tokens: tuple[Token, ...]

    def error(self, message: str, line: int | None = None) -> ConfigError:
        """A ConfigError `FILE:LINE: KEY: message`; the line defaults to the entry's."""
        return ConfigError(f"{self.file}:{line or self.line}: {self.key}: {message}")

    def fields(self) -> list[tuple[Token, ...]]:
        """The tokens, split at the colons."""
        fields: list[list[Token]] = [[]]
        for token in self.tokens:
            if token.text == ":":
                fields.append([])
            else:
                fields[-1].append(token)
        return [tuple(field) for field in fields]

    def words(self) -> tuple[Token, ...]:
        """The tokens of an entry that must not be empty or contain a further colon."""
        for token in self.tokens:
            if token.text == ":":
                raise self.error("a ':' is out of place; remove it", token.line)
        if not self.tokens:
            raise self.error("is empty; write its value after the ':'")
        return self.tokens

    def number(self, token: Token) -> float:
        """Read the token as a finite number."""
        if _NOT_FINITE.fullmatch(token.text):
            raise self.error(f"{token.quoted} must be a finite number", token.line)
        if not token.numeric:
            raise self.error(f"{token.quoted} is not a number; write one such as 0.5", token.line)
        value = float(token.text)
        if not math.isfinite(value):
            raise self.error(f"{token.quoted} must be a finite number", token.line)
        return value

    def probability(self, token: Token) -> float:
        """Read the token as a number in [0, 1]."""
        value = self.number(token)
        if not 0 <= value <= 1:
            raise self.error(
                f"{token.quoted} is not a probability; write a number from 0 to 1", token.line
            )
        return value

    def names(self, tokens: Sequence[Token], kind: str, limit: int) -> tuple[str, ...]:
        """The names, or '0', '1', ... if `tokens` is a single count; at most `limit`."""
        line = tokens[0].line
        count = tokens[0].whole if len(tokens) == 1 else None
        if count == 0:
            raise self.error(f"0 {kind}s; give a count of 1 or more, or names", line)
        if (count or len(tokens)) > limit:
            raise self.error(
                f"{count or len(tokens)} {kind}s are too many; the limit is {limit}", line
            )
        if count is not None:
            return tuple(str(number) for number in range(count))
        lines: dict[str, int] = {}
        for token in tokens:
            if token.numeric or token.text in ("*", "uniform", "identity"):
                raise self.error(
                    f"{token.quoted} is not a valid name for one {kind}; use a word",
                    token.line,
                )
            if token.text in lines:
                raise self.error(
                    f"the {kind} {token.quoted} is named twice; rename one of the two", token.line
                )
            lines[token.text] = token.line
        return tuple(lines)

    def find(self, token: Token, kind: str, names: Sequence[str]) -> int:
        """The index of the element that the token names or numbers."""
        if token.whole is not None:
            return self.index(token, kind, len(names))
        if token.text not in names:
            raise self.error(
                f"unknown {kind} {token.quoted}; {_hint(token.text, names)}", token.line
            )
        return names.index(token.text)

    def index(self, token: Token, kind: str, size: int) -> int:
        """The token as an index below `size`."""
        index = token.whole
        if index is None or index >= size:
            raise self.error(
                f"there is no {kind} {token.text[:_LONGEST]}; count from 0 to {size - 1}",
                token.line,
            )
        return index

    def select(self, tokens: Sequence[Token], kind: str, names: Sequence[str]) -> Numbers:
        """The indices that a one-token field selects: one index, or all indices for `*`."""
        if len(tokens) != 1:
            line = tokens[-1].line if tokens else self.line
            raise self.error(
                f"{len(tokens)} {kind}s between two colons; give one {kind} or '*'", line
            )
        if tokens[0].text == "*":
            return np.arange(len(names))
        return np.array([self.find(tokens[0], kind, names)])

    def select_joint(
        self, tokens: Sequence[Token], kind: str, names: Sequence[Sequence[str]]
    ) -> Numbers:
        """The joint indices that a field selects. The field consists of one element per agent, of a
        joint index, or of `*`."""
        shape = tuple(len(elements) for elements in names)
        total = math.prod(shape)
        if len(tokens) == 1 and tokens[0].text == "*":
            return np.arange(total)
        if len(tokens) == 1 and tokens[0].whole is not None:
            return np.array([self.index(tokens[0], f"joint {kind}", total)])
        if len(tokens) != len(names):
            line = tokens[-1].line if tokens else self.line
            raise self.error(
                f"{len(tokens)} {kind}s for {len(names)} agents; "
                f"give one {kind} per agent, '*', or a joint index",
                line,
            )
        chosen = [
            self.select((token,), kind, elements)
            for token, elements in zip(tokens, names, strict=True)
        ]
        return np.ravel_multi_index(np.ix_(*chosen), shape).ravel()


def split_entries(text: str, file: str) -> tuple[list[Entry], int]:
    """Split the text into entries, in order; also returns the number of the last line.

    A new entry begins at a line that starts with `word :`, `start include :` or `start exclude :`.
    """
    lines = _LINE_END.split(text.removeprefix("\ufeff"))
    heads: list[tuple[str, int]] = []
    bodies: list[list[Token]] = []
    for number, line in enumerate(lines, start=1):
        tokens = [Token(word, number) for word in _TOKEN.findall(line.partition("#")[0])]
        words = [token.text for token in tokens]
        if len(words) > 1 and words[0] != ":" and words[1] == ":":
            heads.append((words[0], number))
            bodies.append(tokens[2:])
        elif len(words) > 2 and words[0] == "start" and words[2] == ":":
            heads.append((f"start {words[1]}", number))
            bodies.append(tokens[3:])
        elif tokens and not bodies:
            raise ConfigError(
                f"{file}:{number}: {tokens[0].quoted} belongs to no entry; begin with 'agents:'"
            )
        elif tokens:
            bodies[-1].extend(tokens)
    last = len(lines) - (len(lines) > 1 and not lines[-1])
    return [
        Entry(file, key, number, tuple(body))
        for (key, number), body in zip(heads, bodies, strict=True)
    ], last


def _hint(text: str, names: Iterable[str]) -> str:
    hint = nearest(text[:_LONGEST], names)
    return hint if len(hint) <= 3 * _LONGEST else hint[: 3 * _LONGEST] + " ..."
