"""A team of tabular softmax policies as programs, with an exact gradient of J.

theta[agent][history][action] are fixed numbers that are not uniform. The agents play through the
library's collector; only the score, grad log pi = 1(a) - pi(. | h), is a formula.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colearn.contract import BatchEngine, Rollout, TokenAnswer, TokenRequest
from colearn.contract.seeding import derive_rng
from colearn.contract.types import Action, Node, Observation, Tree
from colearn.exact.exact_value import ExactEvaluation, evaluate
from colearn.exact.histories import JointHistories
from colearn.methods.credit.shared_reward import SharedReward as Shared
from colearn.rollout.agents import AgentSpec, Language
from colearn.rollout.counts import Counts
from colearn.rollout.grow import grow
from colearn.tasks.dpomdp import TextDecPOMDP

Array = NDArray[np.float64]
Rows = tuple[int, ...]
"""A joint history as every agent's number of its private history."""

SPREAD = 0.5
"""Deviation of theta: no action gets rare, none is like the others."""
FEWEST_VISITS = 200
NODES_AT_ONCE = 20_000
"""Nodes of trees held in memory at a time."""


class NumberedChat:
    """An observation enters a history as its number; the opening says nothing."""

    def __init__(self, observations: Sequence[str]) -> None:
        self._number = {name: number for number, name in enumerate(observations)}

    def open(self, text: str) -> Observation:
        return Observation(text, ())

    def continuation(self, text: str, last: Action) -> Observation:
        return Observation(text, (self._number[text],))

    def opened_reasoning(self, observation: str) -> str:
        return ""


class TableEngine(BatchEngine):
    """Draws actions from tables, where an agent's private history (a_0, o_1, a_1, ...) as the model
    numbers it selects its row."""

    def __init__(self, team: Team) -> None:
        self._team = team

    def generate(self, requests: Sequence[TokenRequest]) -> list[list[TokenAnswer]]:
        return [self._answer(request) for request in requests]

    def sync(self) -> None:
        """The tables are fixed."""

    def _answer(self, request: TokenRequest) -> list[TokenAnswer]:
        history = tuple(request.history.ids)
        team = self._team
        bounds = team.cumulative[request.agent][team.row_of[request.agent][history]]
        words = team.words[request.agent]
        drawn = []
        for seed in request.seeds:
            # A derived seed is 63 uniform bits already.
            number = min(int(np.searchsorted(bounds, seed / 2**63, "right")), len(words) - 1)
            action = Action(words[number], (number,))
            drawn.append(TokenAnswer(action, request.history.act(action.tokens)))
        return drawn


class Team:
    """A finite problem at a horizon (a shipped one by name, or a `file`), and tables to play it."""

    def __init__(self, problem: str, horizon: int, *, file: str | None = None, seed: int = 0):
        self.horizon = horizon
        self.task = TextDecPOMDP(
            problem=problem if file is None else None,
            file=file,
            horizon=horizon,
            opening="start",
            turn="{observation}",
        )
        self.agents = self.task.agents
        self.histories = JointHistories(self.task.model, horizon)
        self.words = {agent: self.task.action_words(agent) for agent in self.agents}
        self.row_of: dict[str, dict[tuple[int, ...], int]] = {}
        self.tables: dict[str, Array] = {}
        """By agent: pi, shape [private histories of all turns, actions]."""
        self.turn_of: dict[str, NDArray[np.int64]] = {}
        for agent in self.agents:
            known = [(h, t) for t, by in enumerate(self.histories.private(agent)) for h in by]
            self.row_of[agent] = {history: row for row, (history, _) in enumerate(known)}
            self.turn_of[agent] = np.array([turn for _, turn in known])
            rng = derive_rng(seed, "theta", problem, agent)
            scores = np.exp(SPREAD * rng.normal(size=(len(known), len(self.words[agent]))))
            self.tables[agent] = scores / scores.sum(axis=1, keepdims=True)
        self.cumulative = {agent: table.cumsum(axis=1) for agent, table in self.tables.items()}
        engine = TableEngine(self)
        names = dict(zip(self.agents, self.task.model.observations, strict=True))
        chats: dict[str, Any] = {agent: NumberedChat(names[agent]) for agent in self.agents}
        self.players = {
            agent: Language(engine=engine, agent=agent, spec=AgentSpec(chat=chat))
            for agent, chat in chats.items()
        }

    @cached_property
    def policy(self) -> dict[str, tuple[Array, ...]]:
        """The tables by turn, as `evaluate` takes them."""
        return {a: tuple(self.by_turn(a, table)) for a, table in self.tables.items()}

    @cached_property
    def exact(self) -> ExactEvaluation:
        return evaluate(self.histories, self.policy)

    @cached_property
    def gradient(self) -> Array:
        """dJ / dtheta of all agents one after another, flat."""
        return self.through_softmax(
            {a: np.concatenate(self.exact.gradient[a]) for a in self.agents}
        )

    @cached_property
    def turns(self) -> NDArray[np.int64]:
        """The turn that each number of a flat gradient belongs to."""
        parts = [np.repeat(self.turn_of[a], len(self.words[a])) for a in self.agents]
        return np.concatenate(parts)

    def tested(self, shape: Rollout, trees: int) -> NDArray[np.bool_]:
        """Which numbers of a flat gradient a test by |t| can take one by one: those of private
        histories that `trees` trees are expected to visit often enough for a normal mean, without
        each row's last, as a softmax's row of a gradient sums to 0."""
        histories = [1.0]
        for turn in range(self.horizon - 1):
            live = self._frontier(turn)
            drawn = shape.joint_actions(live, shape.samples(live))
            histories.append(histories[-1] * len(drawn))
        # The root is tested however few the trees are.
        fewest = min(FEWEST_VISITS, trees // 2)
        parts = []
        for agent in self.agents:
            visits = trees * self.reached[agent] * np.array(histories)[self.turn_of[agent]]
            kept = np.repeat(visits[:, None] >= fewest, len(self.words[agent]), axis=1)
            kept[:, -1] = False
            parts.append(kept.ravel())
        return np.concatenate(parts)

    def _frontier(self, turn: int) -> Node[Any]:
        """A node of this turn, as shapes see it."""
        return Node(
            index=turn,
            parent=None,
            path=(0,) * turn,
            state=None,
            observations={agent: Observation("", ()) for agent in self.agents},
            acted=dict.fromkeys(self.agents, turn),
        )

    @cached_property
    def reached(self) -> dict[str, Array]:
        """By agent: P(h_i), shape [private histories]."""
        by_agent = {}
        for i, agent in enumerate(self.agents):
            by_agent[agent] = np.concatenate(
                [
                    np.bincount(turn.private[i], weights=p, minlength=turn.counts[i])
                    for turn, p in zip(
                        self.histories.turns, self.exact.joint_probabilities, strict=True
                    )
                ]
            )
        return by_agent

    @cached_property
    def joint_of(self) -> dict[Rows, int]:
        """The number of a joint history, counted over all turns, from its private ones."""
        number_of: dict[Rows, int] = {}
        starts = [0] * len(self.agents)
        for turn in self.histories.turns:
            columns = [(turn.private[i] + starts[i]).tolist() for i in range(len(self.agents))]
            for rows in zip(*columns, strict=True):
                number_of[rows] = len(number_of)
            starts = [start + count for start, count in zip(starts, turn.counts, strict=True)]
        return number_of

    def by_turn(self, agent: str, values: Array) -> list[Array]:
        """Numbers of an agent's private histories, cut into turns."""
        counts = np.bincount(self.turn_of[agent], minlength=self.horizon)
        return np.split(values, np.cumsum(counts)[:-1])

    def through_softmax(self, slopes: dict[str, Array]) -> Array:
        """From dJ / dpi, shape [private histories, actions] by agent, to dJ / dtheta, flat."""
        parts = []
        for agent in self.agents:
            table, slope = self.tables[agent], slopes[agent]
            parts.append((table * (slope - (table * slope).sum(axis=1, keepdims=True))).ravel())
        return np.concatenate(parts)

    def play(
        self, shape: Rollout, number: int, *, seed: int, first: int = 0
    ) -> tuple[list[Tree[Any]], Counts]:
        """`number` trees, each from a start of its own."""
        items = list(self.task.items("train")) * number
        return grow(self.task, items, self.players, shape, seed=seed, first_episode=first)


def credited(trees: Sequence[Tree[Any]]) -> list[Tree[Any]]:
    """What the library's advantages read: the joint reward is every agent's."""
    credit = Shared()
    return [tree.credited(credit(tree)) for tree in trees]


def rows_of(team: Team, tree: Tree[Any]) -> list[Rows | None]:
    """Every agent's private history at each node, None where the episode has ended."""
    histories: list[tuple[tuple[int, ...], ...]] = []
    rows: list[Rows | None] = []
    for node in tree.nodes:
        history: tuple[tuple[int, ...], ...] = ((),) * len(team.agents)
        if node.parent is not None:
            before = histories[node.parent]
            history = tuple(
                (*known, *node.actions[agent].tokens)
                for known, agent in zip(before, team.agents, strict=True)
            )
        if node.terminal:
            rows.append(None)
        else:
            history = tuple(
                (*known, *node.observations[agent].tokens)
                for known, agent in zip(history, team.agents, strict=True)
            )
            rows.append(
                tuple(team.row_of[agent][h] for agent, h in zip(team.agents, history, strict=True))
            )
        histories.append(history)
    return rows
