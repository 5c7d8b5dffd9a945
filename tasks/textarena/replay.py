"""Replays a TextArena game from its seed and actions.

Games change in place and draw from Python's and numpy's global generators. Here each has generators
of its own, and is made anew from (seed, actions) or continued if the same play is at hand one step
earlier.
"""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np

from colearn.errors import ConfigError, MissingExtra, nearest
from colearn.seeding import borrowed_global_generators


@dataclass(frozen=True, slots=True)
class GameSource:
    """A game's id, number of players and constructor arguments."""

    env: str
    players: int
    settings: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """A game between two actions."""

    player: int | None
    """The player to move; None after the end."""
    shown: tuple[str, ...]
    """By player, the messages since its last action; its own actions are left out."""
    payoffs: Mapping[int, float] = field(default_factory=dict)
    """The payoffs at the end, by player."""
    invalid: bool = False
    """Whether an invalid action ended the game."""


class _Game:
    """A live game with its own random state."""

    def __init__(self, source: GameSource, seed: int) -> None:
        arena = _package()
        self.wrapped = arena.make(source.env, **dict(source.settings))
        self.env: Any = self.wrapped
        self.actions = []
        while isinstance(self.env, arena.Wrapper):
            if isinstance(self.env, arena.ActionWrapper):
                self.actions.append(self.env.action)
            self.env = self.env.env
        self.own = arena.ObservationType.PLAYER_ACTION
        self.players = source.players
        random.seed(seed)
        np.random.seed(seed % 2**32)
        self.env.reset(num_players=source.players, seed=seed)
        self.unread: list[list[str]] = [[] for _ in range(source.players)]
        self.state: tuple[Any, Any] = (random.getstate(), np.random.get_state())

    def position(self) -> Position:
        state = self.env.state
        for player in range(self.players):
            for sender, message, kind in state.observations.get(player, ()):
                if not (kind is self.own and sender == player):
                    name = state.role_mapping.get(sender, f"Player {sender}")
                    self.unread[player].append(f"[{name}] {message}")
            state.observations[player] = []
        shown = tuple("\n".join(lines).strip() for lines in self.unread)
        if not state.done:
            return Position(player=int(state.current_player_id), shown=shown)
        payoffs, infos = self.env.close()
        return Position(
            player=None,
            shown=shown,
            payoffs={int(player): float(paid) for player, paid in (payoffs or {}).items()},
            invalid=any(bool(info.get("invalid_move")) for info in infos.values()),
        )

    def step(self, text: str) -> None:
        self.unread[int(self.env.state.current_player_id)] = []
        for form in self.actions:
            text = form(text)
        self.env.step(action=text)


_Key = tuple[GameSource, int, tuple[str, ...]]
_KEPT = 256
_live: OrderedDict[_Key, _Game] = OrderedDict()
"""Games by the play that led to them."""


def check(source: GameSource) -> None:
    """Errors: MissingExtra without TextArena; ConfigError for a game that cannot be begun."""
    known = import_module("textarena.envs.registration").ENV_REGISTRY if _package() else {}
    if source.env not in known:
        raise ConfigError(f"task.env: no game '{source.env}'; {nearest(source.env, known)}")
    try:
        position(source, 0, ())
    except (AssertionError, TypeError, ValueError, LookupError, ImportError, OSError) as error:
        reason = " ".join(str(error).split())[:160]
        raise ConfigError(
            f"task.env: '{source.env}' does not begin with {source.players} players and these "
            f"settings ({reason or type(error).__name__}); see its page in TextArena"
        ) from None


@lru_cache(maxsize=4096)
def position(source: GameSource, seed: int, actions: tuple[str, ...]) -> Position:
    """The position after `actions`."""
    with borrowed_global_generators():
        game = _live.pop((source, seed, actions[:-1]), None) if actions else None
        if game is None:
            game = _Game(source, seed)
            rest = actions
        else:
            random.setstate(game.state[0])
            np.random.set_state(game.state[1])
            rest = actions[-1:]
        reached = game.position()
        for action in rest:
            game.step(action)
            reached = game.position()
        game.state = (random.getstate(), np.random.get_state())
        _live[(source, seed, actions)] = game
        while len(_live) > _KEPT:
            _live.popitem(last=False)
        return reached


def _package() -> Any:
    try:
        return import_module("textarena")
    except ModuleNotFoundError as error:
        if error.name != "textarena":
            raise
        raise MissingExtra("textarena", "gyms") from None
