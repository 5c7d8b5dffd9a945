"""Rehearses scripted episodes: grows trees in which every action has maximum length."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from colearn.contract import (
    ActionRequest,
    DecPOMDP,
    Player,
    Rollout,
    TokenAnswer,
    Tokenize,
)
from colearn.contract.types import Action, Observation, Outcome, Tree
from colearn.rollout.agents import AgentSpec
from colearn.rollout.agents.language import with_tokens
from colearn.rollout.counts import Counts
from colearn.rollout.grow import grow

from .script import Script, ScriptedTurn

_WORD = "\ue000"
"""Placeholder character that represents one token of an action's text in a critic's input,
independent of the tokenizer."""


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """An episode with all turns of its script, in which every action has maximum length."""

    trees: list[Tree[Any]]
    counts: Counts
    asked: Mapping[tuple[int, str], int]
    """Number of extended histories of each agent at each turn."""
    drawn: Mapping[tuple[int, str], int]
    """Number of sampled actions of each agent at each turn."""

    def lengths(self) -> list[dict[str, tuple[int, int]]]:
        """Return the number of tokens of each acting agent's history, and of its last observation,
        at each turn. All nodes of a turn have equal lengths."""
        turns: list[dict[str, tuple[int, int]]] = []
        tree = self.trees[0]
        for node in tree.nodes:
            if len(node.path) == len(turns) and node.observations:
                turns.append(
                    {
                        agent: (len(tree.history(node.index, agent).tokens), len(seen.tokens))
                        for agent, seen in node.observations.items()
                    }
                )
        return turns

    def observed_tokens(self) -> int:
        """Return the number of tokens of all observations."""
        nodes = (node for tree in self.trees for node in tree.nodes)
        return sum(len(seen.tokens) for node in nodes for seen in node.observations.values())


def rehearse(script: Script, shape: Rollout, specs: Mapping[str, AgentSpec]) -> Rehearsed:
    """Grow the trees of one item as a run does, with empty actions of maximum length. Programs act
    for agents without specs. Their actions are as long as the longest action of the other agents,
    since some programs repeat that action."""
    asked: Counter[tuple[int, str]] = Counter()
    drawn: Counter[tuple[int, str]] = Counter()
    players: dict[str, Player] = {
        agent: _Silent(asked, drawn, spec) for agent, spec in specs.items()
    }
    longest = max((spec.sampling.max_tokens for spec in specs.values()), default=1)
    for agent in dict.fromkeys(agent for turn in script for agent in turn.seen):
        players.setdefault(agent, _Program(Action(_WORD * longest)))
    task = _Played(script, tuple(players))
    trees, counts = grow(task, [script], players, shape, seed=0)
    return Rehearsed(trees, counts, asked, drawn)


class _Played(DecPOMDP[Script, int]):
    """A task that replays a script; its state is the turn, and actions have no effect."""

    def __init__(self, script: Script, agents: tuple[str, ...]) -> None:
        self.agents, self.horizon = agents, max(1, len(script))
        self._turns = [*script, ScriptedTurn({}, "", "")]

    def items(self, split: str) -> Sequence[Script]:
        return ()

    def reset(self, item: Script, rng: np.random.Generator) -> int:
        return 0

    def observe(self, state: int, agent: str) -> Observation | None:
        return self._turns[state].seen.get(agent)

    def step(
        self, state: int, actions: Mapping[str, str], rng: np.random.Generator
    ) -> Outcome[int]:
        return Outcome(state=state + 1, reward=0.0)

    def global_info(self, state: int) -> str:
        return self._turns[state].global_info

    def privileged_info(self, state: int) -> str:
        return self._turns[state].hidden

    def metrics(self, state: int) -> Mapping[str, float]:
        return {}


class _Silent(Player):
    """A player that answers with actions of maximum length and counts these actions."""

    def __init__(
        self,
        asked: Counter[tuple[int, str]],
        drawn: Counter[tuple[int, str]],
        spec: AgentSpec,
    ) -> None:
        self._asked, self._drawn, self.chat = asked, drawn, spec.chat
        self._read: dict[tuple[str, bool], Observation] = {}
        """Tokenized prompts by prompt, and whether an action came before it."""
        end = 0 if self.chat is None else self.chat.end_id
        longest = spec.sampling.max_tokens
        self.said = Action(_WORD * longest, (end,) * longest)

    async def act(self, request: ActionRequest) -> list[TokenAnswer]:
        place = request.state, request.seat
        self._asked[place] += 1
        self._drawn[place] += len(request.seeds)
        return [TokenAnswer(self.said)] * len(request.seeds)

    def read(self, observation: Observation, last: Action | None) -> Observation:
        if self.chat is None:
            return super().read(observation, last)
        key = repr(observation), last is None  # all actions of an agent are equal
        if key not in self._read:
            self._read[key] = with_tokens(self.chat, observation, last)
        return self._read[key]


@dataclass(frozen=True, slots=True)
class _Program(Player):
    """A player like a program: its actions for a request are equal and have no tokens."""

    said: Action

    @property
    def draws_candidates(self) -> bool:
        return False

    async def act(self, request: ActionRequest) -> list[TokenAnswer]:
        return [TokenAnswer(self.said)] * len(request.seeds)


def limit_tokens(tokenize: Tokenize) -> Tokenize:
    """Wrap a critic's tokenizer so that the actions of `rehearse` have maximum length."""

    def ids(text: str) -> tuple[int, ...]:
        return (*tokenize(text.replace(_WORD, "")), *[0] * text.count(_WORD))

    return ids
