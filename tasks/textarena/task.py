"""TextArena's games as text: replayed from seed and actions, so states stay plain data."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from colearn.contract import DecPOMDP
from colearn.contract.types import Outcome
from colearn.text.notes import note_once
from colearn.text.reasoning import without_reasoning

from ..checks import check_split, check_whole
from .replay import GameSource, Position, check, position

ITEMS = 64
_OFFERED = re.compile(r"'(\[[^\[\]']+\])'")
"""The format in which games list legal actions: '[0]', '[1]'."""


@dataclass(frozen=True, slots=True)
class ArenaGame:
    """An item: one game. All items are equal, since advantages compare episodes of one item."""

    env: str

    def __str__(self) -> str:
        return self.env


@dataclass(frozen=True, slots=True, kw_only=True)
class ArenaState:
    """A game's state, stored as its seed and the actions taken."""

    seed: int
    actions: tuple[str, ...] = ()


class TextArena(DecPOMDP[ArenaGame, ArenaState]):
    """A game of TextArena by its id; agents are `player_0`, `player_1`, ...

    The player to move reads the messages since its last action (at first the rules) and answers
    with any text. At the end of the game, payoffs are paid as local rewards. With one player, the
    payoff is the team's reward; with `team`, the mean payoff is. All randomness follows from the
    seed that `reset` draws, so all branches of a tree have the same random outcomes. A game that
    goes on differently when it is replayed from its seed and actions ends the run with an error.

    Settings: `env`, such as `TicTacToe-v0`; `players`, the number of players; `settings`, the
    game's constructor arguments; `horizon`, the maximum number of actions per episode; `team`,
    whether the joint reward is the mean payoff; `words`, actions on which the embedded model is
    warm-started, by default the actions that the game lists in quotes.

    A game that is not over at the horizon is truncated, because it has not paid.

    Several games raise exceptions on unexpected texts. Such an exception ends the episode, which is
    not scored and not trained; the exception is reported on stderr.

    Metrics: `payoff_AGENT`, not measured in a game that is not over; `invalid`, which is 1 if an
    invalid action ended the game; `failed`, which is 1 if an exception did.

    Errors: ConfigError from the constructor; MissingExtra without TextArena.
    """

    def __init__(
        self,
        env: str,
        *,
        players: int = 2,
        settings: dict[str, Any] | None = None,
        horizon: int = 64,
        team: bool = False,
        words: tuple[str, ...] = (),
    ) -> None:
        check_whole("players", players, 1)
        check_whole("horizon", horizon, 1)
        self.source = GameSource(env, players, dict(settings or {}))
        check(self.source)
        self.agents = tuple(f"player_{number}" for number in range(players))
        self.horizon, self.words = horizon, words
        self.team = team or players == 1
        self.pays = frozenset({"team"} if self.team else {"local"})
        self._items = {split: (ArenaGame(env),) * ITEMS for split in ("train", "test")}

    def items(self, split: str) -> Sequence[ArenaGame]:
        """The same game 64 times, in both splits."""
        check_split(split)
        return self._items[split]

    def reset(self, item: ArenaGame, rng: np.random.Generator) -> ArenaState:
        """A new game, seeded from `rng`."""
        return ArenaState(seed=int(rng.integers(2**31)))

    def observe(self, state: ArenaState, agent: str) -> str | None:
        """Returns the messages since the agent's last action; None if it is not the agent's
        turn."""
        reached = self._at(state)
        player = self.agents.index(agent)
        return reached.shown[player] if reached.player == player else None

    def step(
        self, state: ArenaState, actions: Mapping[str, str], rng: np.random.Generator
    ) -> Outcome[ArenaState]:
        """Play the text of the player to move as the game's next action."""
        [text] = actions.values()
        after = replace(state, actions=(*state.actions, without_reasoning(text)))
        reached = self._at(after)
        if reached.failed is not None:
            note_once(f"task.env: '{self.source.env}' failed on an action: {reached.failed}")
            unscored = {} if self.team else dict.fromkeys(self.agents)
            paid_team = None if self.team else 0.0
            return Outcome(state=after, reward=paid_team, done=True, local_rewards=unscored)
        paid = {agent: reached.payoffs.get(k, 0.0) for k, agent in enumerate(self.agents)}
        return Outcome(
            state=after,
            reward=sum(paid.values()) / len(paid) if self.team else 0.0,
            done=reached.player is None,
            truncated=reached.player is not None and len(after.actions) >= self.horizon,
            local_rewards={} if self.team else paid,
        )

    def metrics(self, state: ArenaState) -> Mapping[str, float | None]:
        """`payoff_AGENT`, `invalid` and `failed`."""
        reached = self._at(state)
        failed = reached.failed is not None
        paid = reached.player is None and not failed
        payoffs = {
            f"payoff_{agent}": reached.payoffs.get(number, 0.0) if paid else None
            for number, agent in enumerate(self.agents)
        }
        return {**payoffs, "invalid": float(reached.invalid), "failed": float(failed)}

    def legal_action(self, state: ArenaState, agent: str, rng: np.random.Generator) -> str | None:
        """Returns one of `words`, or one of the actions that the last message lists; None if there
        is neither."""
        prompt = self.observe(state, agent) or ""
        words = self.words or _OFFERED.findall(prompt.rpartition("[GAME]")[2])
        return str(words[int(rng.integers(len(words)))]) if words else None

    def _at(self, state: ArenaState) -> Position:
        return position(self.source, state.seed, state.actions)
