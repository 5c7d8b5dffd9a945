"""A cache of mutable games from which a replay can continue."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Hashable
from multiprocessing.util import Finalize
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Live = TypeVar("Live")

_KEPT = 256


class LiveGames(Generic[Key, Live]):
    """Cache of the most recent games, at most 256, keyed by the moves that led to each game.

    The cache calls `end` with each dropped game. When the process ends, the cache drops all games.
    A forked process does not end the games of its parent process.
    """

    def __init__(self, end: Callable[[Live], None] = lambda _: None) -> None:
        self._end = end
        self._by_play: OrderedDict[Key, Live] = OrderedDict()
        self._process = 0

    def take(self, play: Key) -> Live | None:
        """Removes and returns the game after these moves. The game is removed because its next step
        changes it."""
        return self._by_play.pop(play, None) if self._process == os.getpid() else None

    def keep(self, play: Key, game: Live) -> None:
        """Keep a game. The game replaces a kept game with the same moves; if there are too many
        games, the oldest is dropped."""
        if self._process != os.getpid():
            self._process, self._by_play = os.getpid(), OrderedDict()
            Finalize(None, self.drop_where, args=(lambda _: True,), exitpriority=0)
        before = self._by_play.pop(play, None)
        if before is not None:
            self._end(before)
        self._by_play[play] = game
        while len(self._by_play) > _KEPT:
            self.drop()

    def drop(self) -> bool:
        """Drop the oldest game. Returns whether this process had a game to drop."""
        if self._process != os.getpid() or not self._by_play:
            return False
        self._end(self._by_play.popitem(last=False)[1])
        return True

    def drop_where(self, chosen: Callable[[Key], bool]) -> None:
        """Drop the games for whose moves `chosen` returns True."""
        if self._process != os.getpid():
            return
        for play in [play for play in list(self._by_play) if chosen(play)]:
            game = self._by_play.pop(play, None)
            if game is not None:
                self._end(game)
