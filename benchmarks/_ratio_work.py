"""Work whose times `ratios.py` compares: each fast path, and the same without the idea."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from vs_comlrl import Reprefill, SharedWords, State, words

from colearn.config import Config
from colearn.contract import Player
from colearn.contract.rows import Piece
from colearn.models import base
from colearn.models.tree_attention import tree_attention
from colearn.models.tree_mask import TreeMask
from colearn.rollout.agents import Language
from colearn.rollout.grow import grow
from colearn.training.load_team import load_team
from colearn.training.team import Team
from colearn.training.update.build_updater import build_updater

K, NEW_TOKENS = 3, 32
HEADS, SIZE = 8, 64
"""Of attention, as in the model."""

Side = Callable[[], Any]


class Short(SharedWords):
    """One turn after eight words: nearly all work is decoding."""

    horizon = 1

    def observe(self, state: State, agent: str) -> str:
        return words(state.item, agent, state.turn, 8)


class Long(SharedWords):
    """First observations of 400 words."""

    def observe(self, state: State, agent: str) -> str:
        return words(state.item, agent, state.turn, 36 if state.turn else 400)


def tree(k: int, turns: int, length: int) -> tuple[Piece, ...]:
    """A full tree with pieces of `length` tokens, level after level."""
    pieces = [Piece(0, length, -1, 0, 0)]
    level = [0]
    for turn in range(turns):
        below = []
        for parent in level:
            for _ in range(k):
                start = pieces[-1].end
                below.append(len(pieces))
                pieces.append(Piece(start, start + length, parent, length * (turn + 1), 0))
        level = below
    return tuple(pieces)


def team(path: str, algorithm: str, new_tokens: int = NEW_TOKENS) -> Team:
    chosen: dict[str, Any] = {"name": algorithm}
    if algorithm == "magrpo":
        chosen["rollout"] = {"k": K}
    settings: dict[str, Any] = {
        "task": {"name": "vs_comlrl:SharedWords"},
        "algorithm": chosen,
        "models": {"*": {"path": path}},
        "agents": {"*": {"sampling": {"max_tokens": new_tokens}}},
        "critic": None if algorithm == "magrpo" else {"path": path, "baseline": "none"},
        "run": {"device": "cpu"},
    }
    return load_team(Config.model_validate(settings))


@contextmanager
def instead(name: str, value: Any) -> Iterator[None]:
    """Another value of a module's name in `colearn.models.base`, which chooses the fast paths."""
    before = getattr(base, name)
    setattr(base, name, value)
    try:
        yield
    finally:
        setattr(base, name, before)


def without(name: str, value: Any, work: Side) -> Side:
    def run() -> None:
        with instead(name, value):
            work()

    return run


def prefilling(players: Mapping[str, Player], *, forget: bool) -> dict[str, Player]:
    """Players without kept caches, or without forks of one prefill."""
    changed: dict[str, Player] = {}
    for agent, player in players.items():
        assert isinstance(player, Language)
        engine: Any = player.engine
        changed[agent] = replace(player, engine=Reprefill(engine, forget=forget))
    return changed


class Work:
    """One tree of two turns with its update, chains with a critic, and long prompts."""

    def __init__(self, path: str) -> None:
        self.magrpo, self.chains = team(path, "magrpo"), team(path, "collm_cc")
        self.updater, self.updater_of_chains = map(build_updater, (self.magrpo, self.chains))
        self.long = team(path, "magrpo", new_tokens=4)
        self.trees = self.rollout()
        self.pairs_of_turns = (len(self.trees[0].nodes) - 1) // SharedWords.horizon
        self.histories = self.rollout_of_chains()

    def rollout(self) -> Any:
        one = self.magrpo
        return grow(one.run.task, [0], one.players, one.run.parts.rollout, seed=0)[0]

    def rollout_of_chains(self) -> Any:
        one, episodes = self.chains, range(self.pairs_of_turns)
        return grow(one.run.task, episodes, one.players, one.run.parts.rollout, seed=0)[0]

    def decode(self) -> Any:
        one = self.chains
        return grow(Short(), range(24), one.players, one.run.parts.rollout, seed=0)[0]

    def rollout_of_long(self, players: Mapping[str, Player]) -> Any:
        return grow(Long(), [0], players, self.long.run.parts.rollout, seed=0)[0]

    def update(self, token_budget: int | None = None) -> None:
        updater = self.updater
        assert updater is not None
        usual = updater.token_budget
        updater.token_budget = token_budget or usual
        updater.update(self.trees, 0)
        updater.token_budget = usual

    def iteration_of_chains(self) -> None:
        updater = self.updater_of_chains
        assert updater is not None
        updater.update(self.rollout_of_chains(), 0)

    def iteration(self) -> None:
        self.rollout()
        self.update()

    def pairs(self) -> dict[str, tuple[Side, Side]]:
        """(the fast path, the same without the idea) by name."""
        players = self.long.players

        def long() -> None:
            self.rollout_of_long(players)

        return {
            "update: packed tree / a row for each path": (self.update, lambda: self.update(1)),
            "attention: blocks / a mask": (
                attention,
                without("by_blocks", lambda *_: None, attention),
            ),
            "decoding 24 rows: packed weights / plain ones": (
                self.decode,
                without("worthwhile", lambda *_: False, self.decode),
            ),
            "rollout: caches kept / whole histories prefilled": (
                long,
                lambda: self.rollout_of_long(prefilling(players, forget=True)),
            ),
            "rollout: one prefill and K forks / K prefills": (
                long,
                lambda: self.rollout_of_long(prefilling(players, forget=False)),
            ),
            "equal joint actions: chains with a critic / a tree": (
                self.iteration_of_chains,
                self.iteration,
            ),
        }


def attention() -> None:
    """One layer over a tree of 21 pieces, 1,344 tokens, forward and backward."""
    pieces = tree(4, 2, 64)
    mask = TreeMask((pieces,), pieces[-1].end)
    device = torch.device("cpu")
    query, key, value = (
        torch.randn(1, HEADS, mask.width, SIZE, requires_grad=True) for _ in range(3)
    )
    chosen = base.by_blocks(mask, device, HEADS * SIZE)  # type: ignore[attr-defined]
    given = mask.dense(device) if chosen is None else chosen
    tree_attention(torch.nn.Module(), query, key, value, given)[0].sum().backward()
