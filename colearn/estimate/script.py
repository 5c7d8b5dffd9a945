"""Scripted episodes: records a task's prompts at each turn, and builds trees in which every action
has maximum length."""

from __future__ import annotations

import itertools
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
    Sampling,
    TokenAnswer,
    Tokenize,
)
from colearn.contract.checked_task import CheckedTask, item_name
from colearn.contract.seeding import derive_rng
from colearn.contract.types import Action, Observation, Outcome, Tree
from colearn.errors import ConfigError
from colearn.rollout.agents import AgentSpec
from colearn.rollout.agents.language import with_tokens
from colearn.rollout.context_limit import check_length
from colearn.rollout.counts import Counts
from colearn.rollout.grow import grow

_WORD = "\ue000"
"""Placeholder character that represents one token of an action's text in a critic's input,
independent of the tokenizer."""


@dataclass(frozen=True, slots=True)
class ScriptedTurn:
    """The texts of one scripted turn."""

    seen: Mapping[str, Observation]
    """Prompts of the acting agents."""
    global_info: str
    """The global information m_t."""
    hidden: str
    """Privileged information, for centralised critics only."""


Script = tuple[ScriptedTurn, ...]
"""The turns of the longest possible episode of one item."""


Readings = dict[tuple[str, str, bool], Observation]
"""Tokenized prompts by agent, prompt, and whether an action came before it."""

ONE_TOKEN = AgentSpec(sampling=Sampling(max_tokens=1))
"""Agent spec for rehearsals that only count calls."""


def read_script(task: DecPOMDP[Any, Any], item: Any, number: int) -> Script:
    """Play one item with legal actions if the task offers them, else with empty actions.

    If the episode ends before the horizon, the missing turns repeat the last turn that was reached.
    If agents act in sequence, each missing turn repeats the last turn of the same agents."""
    rng = derive_rng("estimate", number)
    checked = CheckedTask(task, item_name(item))
    state = checked.reset(item, rng)
    turns: list[ScriptedTurn] = []
    horizon = checked.horizon_of(item)
    for _ in range(horizon):
        prompts = checked.observe(state)
        if not prompts:
            break
        turns.append(
            ScriptedTurn(prompts, checked.global_info(state), checked.privileged_info(state))
        )
        actions = {agent: checked.legal_action(state, agent, rng) or "" for agent in prompts}
        outcome = checked.step(state, actions, rng)
        state = outcome.state
        if outcome.last:
            break
    period = len({tuple(turn.seen) for turn in turns})
    later_turns = itertools.islice(itertools.cycle(turns[-period:]), horizon - len(turns))
    return (*turns, *later_turns)


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """An episode with all turns of its script, in which every action has maximum length."""

    trees: list[Tree[Any]]
    counts: Counts
    asked: Mapping[tuple[int, str], int]
    """Number of extended histories of each agent at each turn."""
    drawn: Mapping[tuple[int, str], int]
    """Number of sampled actions of each agent at each turn."""


def check_lengths(
    task: DecPOMDP[Any, Any],
    items: Sequence[Any],
    scripts: Sequence[Script],
    specs: Mapping[str, AgentSpec],
) -> None:
    """Errors: TaskError if a prompt exceeds the maximum length of its agent's model."""
    for item, script in zip(items, scripts, strict=False):
        for turn in script:
            for agent, prompt in turn.seen.items():
                spec = specs.get(agent)
                if spec is not None and spec.chat is not None:
                    with CheckedTask(task, item_name(item)).placed():
                        tokens = with_tokens(spec.chat, prompt, None).tokens
                        check_length(agent, len(tokens), spec.positions)
                        _check_window(agent, len(tokens), spec.window)


def overflows(
    scripts: Sequence[Script], specs: Mapping[str, AgentSpec], limits: Mapping[str, str]
) -> dict[str, str]:
    """Return warnings, keyed by config field, about agents whose histories may leave no room for an
    answer within the model's maximum length. The check assumes that every action has maximum
    length. `limits` is each agent's `overflow`."""
    longest: Counter[str] = Counter()
    for script in scripts:
        lengths: Counter[str] = Counter()
        for turn in script:
            for agent, prompt in turn.seen.items():
                spec = specs.get(agent)
                if spec is None or spec.chat is None:
                    continue
                before = 0 if prompt.fresh else lengths[agent]
                length = before + len(with_tokens(spec.chat, prompt, None).tokens)
                longest[agent] = max(longest[agent], length)
                lengths[agent] = length + spec.sampling.max_tokens
    warnings = {}
    for agent, tokens in longest.items():
        positions = specs[agent].positions
        if positions is not None and tokens >= positions:
            consequence = "stops the run" if limits.get(agent) == "error" else "ends the episode"
            warnings[f"agents.{agent}.overflow"] = (
                f"a history may reach {tokens} tokens and its model reads {positions}: what does "
                f"not fit {consequence}; show less, play fewer turns, lower sampling.max_tokens, "
                "or name a model with a longer context"
            )
    return warnings


def _check_window(agent: str, tokens: int, window: int | None) -> None:
    """Errors: ConfigError for an observation that does not fit the agent's window."""
    if window is not None and tokens > window:
        raise ConfigError(
            f"agents.{agent}.window: an observation of {tokens} tokens exceeds the window of "
            f"{window}; raise it"
        )


def rehearse(
    number: int,
    script: Script,
    shape: Rollout,
    specs: Mapping[str, AgentSpec],
    readings: Readings | None = None,
) -> Rehearsed:
    """Grow the trees of one item as a run does, with empty actions of maximum length. Programs act
    for agents without specs. Their actions are as long as the longest action of the other agents,
    since some programs repeat that action. Prompts in `readings` are not tokenized again; new
    prompts are added to `readings`."""
    calls = _Calls(Counter(), Counter())
    known: Readings = {} if readings is None else readings
    players: dict[str, Player] = {
        agent: _Silent(agent, calls, spec, known) for agent, spec in specs.items()
    }
    longest = max((spec.sampling.max_tokens for spec in specs.values()), default=1)
    for agent in dict.fromkeys(agent for turn in script for agent in turn.seen):
        players.setdefault(agent, _Program(Action(_WORD * longest)))
    task = _Played(tuple(players), max(1, len(script)))
    trees, counts = grow(
        task,
        [script],
        players,
        shape,
        seed=0,
        first_episode=number,
        uncertainty=_equally_unsure,
    )
    return Rehearsed(trees, counts, calls.asked, calls.drawn)


def _equally_unsure(trees: Sequence[Tree[Any]]) -> list[dict[tuple[int, ...], float]]:
    """Return equal uncertainties for all nodes. A shape that forks at the least certain nodes then
    forks as early as its budget allows, so that its branches are long."""
    return [{node.path: 1.0 for node in tree.nodes} for tree in trees]


@dataclass(frozen=True, slots=True)
class _ScriptPlace:
    """A script and the current turn in it."""

    script: Script
    turn: int


class _Played(DecPOMDP[Script, _ScriptPlace]):
    """A task that replays a script; actions have no effect."""

    def __init__(self, agents: tuple[str, ...], horizon: int) -> None:
        self.agents, self.horizon = agents, horizon

    def items(self, split: str) -> Sequence[Script]:
        return ()

    def reset(self, item: Script, rng: np.random.Generator) -> _ScriptPlace:
        return _ScriptPlace(item, 0)

    def observe(self, state: _ScriptPlace, agent: str) -> Observation | None:
        if state.turn == len(state.script):
            return None
        return state.script[state.turn].seen.get(agent)

    def step(
        self, state: _ScriptPlace, actions: Mapping[str, str], rng: np.random.Generator
    ) -> Outcome[_ScriptPlace]:
        return Outcome(state=_ScriptPlace(state.script, state.turn + 1), reward=0.0)

    def global_info(self, state: _ScriptPlace) -> str:
        return state.script[state.turn].global_info if state.turn < len(state.script) else ""

    def privileged_info(self, state: _ScriptPlace) -> str:
        return state.script[state.turn].hidden if state.turn < len(state.script) else ""

    def metrics(self, state: _ScriptPlace) -> Mapping[str, float]:
        return {}


@dataclass(frozen=True, slots=True, eq=False)
class _Calls:
    """Counts the extended histories and the actions of each agent at each turn."""

    asked: Counter[tuple[int, str]]
    drawn: Counter[tuple[int, str]]


class _Silent(Player):
    """A player that answers with actions of maximum length and counts these actions."""

    def __init__(self, agent: str, calls: _Calls, spec: AgentSpec, readings: Readings) -> None:
        self._agent, self._calls, self.chat, self._read = agent, calls, spec.chat, readings
        end = 0 if self.chat is None else self.chat.end_id
        longest = spec.sampling.max_tokens
        self.said = Action(_WORD * longest, (end,) * longest)

    async def act(self, request: ActionRequest) -> list[TokenAnswer]:
        place = request.state.turn, request.seat
        self._calls.asked[place] += 1
        self._calls.drawn[place] += len(request.seeds)
        return [TokenAnswer(self.said)] * len(request.seeds)

    def read(self, observation: Observation, last: Action | None) -> Observation:
        if self.chat is None:
            return super().read(observation, last)
        key = self._agent, repr(observation), last is None  # all actions of an agent are equal
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
