"""A private history as token ids, with the visible range of each turn."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field


class WindowExceeded(Exception):
    """Raised when a single observation is longer than the agent's window."""


@dataclass(frozen=True, slots=True)
class Turn:
    """An observation and the action after it."""

    begin: int
    """Position of the observation's first token."""
    visible_from: int
    """First position visible to the turn's tokens."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class TokenHistory:
    """o_0 a_0 ... o_t [a_t] as ids, four bytes each, with the window of every turn.

    The object is immutable and complete: an engine needs nothing else to continue the history.
    Engines hold weak references to the histories of answers, in order to find their KV caches.
    Without a KV cache, an engine recomputes the same keys and values from the ids with the same
    visible ranges.
    """

    ids: array[int] = field(default_factory=lambda: array("i"))
    turns: tuple[Turn, ...] = ()

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def visible_from(self) -> int:
        """First position visible to the last turn."""
        return self.turns[-1].visible_from if self.turns else 0

    def observe(self, tokens: Iterable[int], window: int | None) -> TokenHistory:
        """Returns the history extended by the next turn's observation. With a window C, only the
        most recent C positions stay visible.

        Errors: WindowExceeded if `tokens` alone exceed the window.
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
        """Returns the history extended by the last turn's action, which has the same visible range
        as the observation."""
        ids = array("i", self.ids)
        ids.extend(tokens)
        return TokenHistory(ids, self.turns)

    def visibility(self, start: int) -> list[int]:
        """For each position from `start` onwards: the first position that is visible from there."""
        first_visible: list[int] = []
        ends = [turn.begin for turn in self.turns[1:]] + [len(self.ids)]
        for turn, end in zip(self.turns, ends, strict=True):
            first_visible += [turn.visible_from] * (end - max(turn.begin, start))
        return first_visible
