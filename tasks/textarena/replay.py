"""Replays a TextArena game from its seed and actions.

TextArena's games change in place and draw from Python's and numpy's global generators. In this
module, each game has separate generators. A replay creates the game again from (seed, actions), or
continues a kept game that is one step behind.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from typing import Any

from colearn.contract.seeding import OwnGenerators
from colearn.errors import (
    ConfigError,
    DataNotHere,
    TaskError,
    line_of,
    nearest,
    reason_of,
    required,
)

from ..live_games import LiveGames


@dataclass(frozen=True, slots=True)
class GameSource:
    """A game's id, number of players and constructor arguments."""

    env: str
    players: int
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """A game between two actions."""

    player: int | None
    """The player to move; None after the end."""
    shown: tuple[str, ...]
    """For each player, the messages since its last action, without its own actions."""
    payoffs: Mapping[int, float] = field(default_factory=dict)
    """The payoffs at the end, by player."""
    invalid: bool = False
    """Whether an invalid action ended the game."""
    failed: str | None = None
    """The exception that the last action raised in the game, which ended it; None: no exception."""


class _Game:
    """A live game with its own random generators."""

    def __init__(self, source: GameSource, seed: int) -> None:
        arena = _package()
        self.generators = OwnGenerators(seed)
        with self.generators.drawn_from():
            self.env: Any = arena.make(source.env, **deepcopy(dict(source.settings)))
        self.actions = []
        while isinstance(self.env, arena.Wrapper):
            if isinstance(self.env, arena.ActionWrapper):
                self.actions.append(self.env.action)
            self.env = self.env.env
        self.own = arena.ObservationType.PLAYER_ACTION
        self.game = arena.GAME_ID
        self.mover: int = self.game
        """The player of the last action; the game itself before the first one."""
        self.players = source.players
        with self.generators.drawn_from():
            self.env.reset(num_players=source.players, seed=seed)
        self.unread: list[list[str]] = [[] for _ in range(source.players)]

    def position(self) -> Position:
        state = self.env.state
        for player in range(self.players):
            for named, message, kind in state.observations.get(player, ()):
                # several games announce an action as their own message
                sender = self.mover if kind is self.own and named == self.game else named
                if not (kind is self.own and sender == player):
                    name = state.role_mapping.get(sender, f"Player {sender}")
                    self.unread[player].append(f"[{name}] {message}")
            state.observations[player] = []
        texts = tuple("\n".join(lines).strip() for lines in self.unread)
        if not state.done:
            return Position(player=int(state.current_player_id), shown=texts)
        payoffs, infos = self.env.close()
        return Position(
            player=None,
            shown=texts,
            payoffs={int(player): float(paid) for player, paid in (payoffs or {}).items()},
            invalid=any(bool(info.get("invalid_move")) for info in infos.values()),
        )

    def step(self, text: str) -> None:
        self.mover = int(self.env.state.current_player_id)
        self.unread[self.mover] = []
        for form in self.actions:
            text = form(text)
        self.env.step(action=text)


_OF_NLTK = re.compile(r"nltk\.download\('(\w+)'\)")
"""The remedy in NLTK's error for data that were not downloaded."""
_KEPT = 4096
_live = LiveGames[tuple[GameSource, int, tuple[str, ...]], _Game]()


def check(source: GameSource) -> None:
    """Errors: MissingExtra without TextArena; DataNotHere for a game without its data; ConfigError
    for a game that cannot be started."""
    known = _package() and import_module("textarena.envs.registration").ENV_REGISTRY
    if source.env not in known:
        raise ConfigError(f"task.env: no game '{source.env}'; {nearest(source.env, known)}")
    try:
        position(source, 0, ())
    except (AssertionError, TypeError, ValueError, LookupError, ImportError, OSError) as error:
        if absent := _OF_NLTK.search(str(error)):
            raise DataNotHere(
                f"task.env: '{source.env}' reads NLTK's '{absent[1]}', which is not on this "
                f"machine; run: python -m nltk.downloader {absent[1]}"
            ) from None
        raise ConfigError(
            f"task.env: '{source.env}' does not begin with {source.players} players and these "
            f"settings ({type(error).__name__}: {reason_of(error)}); see its page in TextArena"
        ) from None


@lru_cache(maxsize=_KEPT)
def position(source: GameSource, seed: int, actions: tuple[str, ...]) -> Position:
    """The position after `actions`."""
    game = _live.take((source, seed, actions[:-1])) if actions else None
    new_actions = actions[-1:]
    if game is None:
        game, new_actions = _Game(source, seed), actions
    kind = type(game.env)
    with game.generators.drawn_from():
        reached = game.position()
        for count, action in enumerate(new_actions, start=len(actions) - len(new_actions)):
            _check_same((source, kind, seed, actions[:count]), reached)
            try:
                game.step(action)
                reached = game.position()
            except Exception as error:  # noqa: BLE001 - a text must not end the run
                failed = f"{type(error).__name__}: {reason_of(error)} ({line_of(error)})"
                return Position(player=None, shown=reached.shown, failed=failed)
    _check_same((source, kind, seed, actions), reached)
    _live.keep((source, seed, actions), game)
    return reached


_Play = tuple[GameSource, type, int, tuple[str, ...]]
"""A game, its class, its seed and the actions."""
_reached: OrderedDict[_Play, Position] = OrderedDict()
"""The latest positions of this process, with which replays are compared."""


def _check_same(play: _Play, current: Position) -> None:
    """Errors: TaskError if the same seed and actions have led to another position before."""
    before = _reached.pop(play, current)
    if before != current:
        raise TaskError(
            f"task.env: '{play[0].env}' goes on differently when it is replayed from its seed and "
            "actions; let all randomness follow from the generators of random and numpy"
        )
    _reached[play] = before
    while len(_reached) > _KEPT:
        _reached.popitem(last=False)


def _package() -> Any:
    return required("textarena", "gyms")
