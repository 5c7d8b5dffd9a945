"""A private history as ids, and what each of its turns can see of it."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field


class WindowExceeded(Exception):
    """An observation alone is longer than the agent's window."""


@dataclass(frozen=True, slots=True)
class Turn:
    """An observation and the action after it."""

    begin: int
    """Position of the observation's first token."""
    visible_from: int
    """First position that the turn's tokens see."""


@dataclass(frozen=True, slots=True)
class TokenHistory:
    """o_0 a_0 ... o_t [a_t] as ids, four bytes each, with the window of every turn.

    A KV cache that was evicted is computed again from this, under the same visibility and so to the
    same values.
    """

    ids: array[int] = field(default_factory=lambda: array("i"))
    turns: tuple[Turn, ...] = ()

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def visible_from(self) -> int:
        """Of the last turn."""
        return self.turns[-1].visible_from if self.turns else 0

    def observe(self, tokens: Iterable[int], window: int | None) -> TokenHistory:
        """The history with the next turn's observation: with a window C all but the most recent
        C positions are forgotten here.

        Errors: WindowExceeded where `tokens` alone do not fit the window.
        """
        ids = array("i", self.ids)
        ids.extend(tokens)
        new = len(ids) - len(self.ids)
        if window is not None and new > window:
            raise WindowExceeded(f"{new} new tokens exceed the agent's window of {window}")
        start = self.visible_from
        if window is not None:
            start = max(start, len(ids) - window)
        return TokenHistory(ids, (*self.turns, Turn(len(self.ids), start)))

    def act(self, tokens: Iterable[int]) -> TokenHistory:
        """The history with the last turn's action; it sees what the observation sees."""
        ids = array("i", self.ids)
        ids.extend(tokens)
        return TokenHistory(ids, self.turns)

    def visibility(self, start: int) -> list[int]:
        """For each position from `start` on, the first position it sees."""
        found: list[int] = []
        ends = [turn.begin for turn in self.turns[1:]] + [len(self.ids)]
        for turn, end in zip(self.turns, ends, strict=True):
            found += [turn.visible_from] * (end - max(turn.begin, start))
        return found
