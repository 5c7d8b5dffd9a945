"""Keeps games that change in place, for a replay to go on from."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Live = TypeVar("Live")

_KEPT = 256


class LiveGames(Generic[Key, Live]):
    """The most recently kept games by the play that led to them, 256 at most.

    `end` is called with each game that is dropped.
    """

    def __init__(self, end: Callable[[Live], None] = lambda _: None) -> None:
        self._end = end
        self._by_play: OrderedDict[Key, Live] = OrderedDict()

    def take(self, play: Key) -> Live | None:
        """The game after this play, which is no longer kept: its next step changes it."""
        return self._by_play.pop(play, None)

    def keep(self, play: Key, game: Live) -> None:
        """Keep a game; the one kept longest is dropped for it."""
        self._by_play[play] = game
        while len(self._by_play) > _KEPT:
            self.drop()

    def drop(self) -> bool:
        """Drop the game kept longest; whether there was one."""
        if not self._by_play:
            return False
        self._end(self._by_play.popitem(last=False)[1])
        return True
