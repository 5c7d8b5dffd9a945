"""The collector: plays items out into trees, all live nodes of a turn in one generator call.

It knows tasks, shapes and generators by contract only, and no model.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any

from colearn.contract import DecPOMDP, Generator, Request, Rollout, Sampled, Session
from colearn.history import ChatFormat
from colearn.seeding import Key, derive_rng, derive_seed
from colearn.types import Action, Node, Observation, Outcome, Tree

from .transition import observe_all, transition

_Joint = Mapping[str, Sampled]
_Transition = tuple[DecPOMDP[Any, Any], Any, dict[str, str], tuple[Key, ...]]


@dataclass(frozen=True, slots=True)
class Player:
    """An agent at play: the generator that serves it and the format it is spoken to in."""

    generator: Generator
    chat: ChatFormat


@dataclass(slots=True)
class Counts:
    """What a collection cost."""

    generations: int = 0
    """Actions sampled, over agents: the calls of Proposition 4.3."""
    joint_actions: int = 0
    """Joint actions executed: the environment steps."""
    tokens: int = 0
    """Tokens sampled, over agents."""
    response_seconds: list[float] = field(default_factory=list)
    """For each turn, the time of the slowest generator call: agents run in parallel."""

    def add(self, other: Counts) -> None:
        """Those of another collection, whose turns follow these."""
        self.generations += other.generations
        self.joint_actions += other.joint_actions
        self.tokens += other.tokens
        self.response_seconds += other.response_seconds


@dataclass(frozen=True, slots=True)
class _Live:
    """A node that goes on, with every agent's session and last action."""

    tree: int
    node: Node[Any]
    sessions: Mapping[str, Session]
    last: Mapping[str, Action]


def collect(
    task: DecPOMDP[Any, Any],
    items: Sequence[Any],
    players: Mapping[str, Player],
    shape: Rollout,
    *,
    seed: int,
    first_episode: int = 0,
    greedy: bool = False,
    pool: Executor | None = None,
) -> tuple[list[Tree[Any]], Counts]:
    """Roll every item out. Episode numbers, with the seed, fix all randomness.

    Errors: TaskError where the task breaks its contract, ConfigError from a generator.
    """
    return Collector(task, players, shape, seed, first_episode, greedy, pool).run(items)


class Collector:
    """The state of one collection: trees that grow turn by turn."""

    def __init__(
        self,
        task: DecPOMDP[Any, Any],
        players: Mapping[str, Player],
        shape: Rollout,
        seed: int,
        first_episode: int,
        greedy: bool,
        pool: Executor | None,
    ) -> None:
        self.task, self.players, self.shape = task, players, shape
        self.seed, self.first_episode = seed, first_episode
        self.greedy, self.pool = greedy, pool
        self.trees: list[list[Node[Any]]] = []
        self.counts = Counts()

    def run(self, items: Sequence[Any]) -> tuple[list[Tree[Any]], Counts]:
        live = []
        for number, item in enumerate(items):
            self.trees.append([])
            rng = derive_rng(self.seed, "reset", self.first_episode + number)
            outcome: Outcome[Any] = Outcome(state=self.task.reset(item, rng), reward=0.0)
            root = self._grow(number, None, outcome, {}, {})
            if not root.terminal:
                live.append(_Live(number, root, {}, {}))
        while live:
            live = self._turn(live)
        trees = [
            Tree(
                item=item,
                episode=self.first_episode + number,
                agents=tuple(self.task.agents),
                nodes=tuple(nodes),
            )
            for number, (item, nodes) in enumerate(zip(items, self.trees, strict=True))
        ]
        return trees, self.counts

    def _turn(self, live: Sequence[_Live]) -> list[_Live]:
        """Sample, pair, step and observe, for all live nodes."""
        edges: list[tuple[_Live, int, _Joint]] = []
        for at, drawn in zip(live, self._sample(live), strict=True):
            sizes = {agent: len(options) for agent, options in drawn.items()}
            for child, chosen in enumerate(self.shape.joint_actions(sizes)):
                edges.append((at, child, {agent: drawn[agent][k] for agent, k in chosen.items()}))
        outcomes = self._step(edges)
        self.counts.joint_actions += len(edges)

        by_parent: dict[tuple[int, int], list[Outcome[Any]]] = {}
        for (at, _, _), outcome in zip(edges, outcomes, strict=True):
            by_parent.setdefault((at.tree, at.node.index), []).append(outcome)
        expanded = {key: set(self.shape.continues(group)) for key, group in by_parent.items()}
        following = []
        for (at, child, joint), outcome in zip(edges, outcomes, strict=True):
            actions = {agent: sampled.action for agent, sampled in joint.items()}
            last = {**at.last, **actions}
            node = self._grow(at.tree, (at.node, child), outcome, actions, last)
            if not node.terminal and child in expanded[at.tree, at.node.index]:
                sessions = {agent: sampled.session for agent, sampled in joint.items()}
                following.append(_Live(at.tree, node, {**at.sessions, **sessions}, last))
        return following

    def _sample(self, live: Sequence[_Live]) -> list[dict[str, list[Sampled]]]:
        """Every acting agent's actions at every node; one call per generator, agents together."""
        calls: dict[int, list[tuple[int, Request]]] = {}
        for number, at in enumerate(live):
            sizes = self.shape.samples(at.node.turn, tuple(at.node.observations))
            for agent, observation in at.node.observations.items():
                seeds = tuple(
                    derive_seed(self.seed, "act", self._episode(at), *at.node.path, agent, k)
                    for k in range(sizes[agent])
                )
                request = Request(
                    agent=agent,
                    session=at.sessions.get(agent),
                    tokens=observation.tokens,
                    seeds=seeds,
                )
                generator = self.players[agent].generator
                calls.setdefault(id(generator), []).append((number, request))
        drawn: list[dict[str, list[Sampled]]] = [{} for _ in live]
        slowest = 0.0
        for requests in calls.values():
            generator = self.players[requests[0][1].agent].generator
            started = time.perf_counter()
            answers = generator.generate([r for _, r in requests], greedy=self.greedy)
            slowest = max(slowest, time.perf_counter() - started)
            for (number, request), options in zip(requests, answers, strict=True):
                drawn[number][request.agent] = options
                self.counts.generations += len(options)
                self.counts.tokens += sum(len(option.action.tokens) for option in options)
        self.counts.response_seconds.append(slowest)
        return drawn

    def _step(self, edges: Sequence[tuple[_Live, int, _Joint]]) -> list[Outcome[Any]]:
        arguments: list[_Transition] = [
            (
                self.task,
                at.node.state,
                {agent: sampled.action.text for agent, sampled in joint.items()},
                (self.seed, "step", self._episode(at), *at.node.path, child),
            )
            for at, child, joint in edges
        ]
        if self.pool is None:
            return [transition(*argument) for argument in arguments]
        return list(self.pool.map(transition, *zip(*arguments, strict=True)))

    def _grow(
        self,
        tree: int,
        parent: tuple[Node[Any], int] | None,
        outcome: Outcome[Any],
        actions: Mapping[str, Action],
        last: Mapping[str, Action],
    ) -> Node[Any]:
        """Append the node that an outcome leads to, with what each acting agent sees there."""
        path = () if parent is None else (*parent[0].path, parent[1])
        observations: dict[str, Observation] = {}
        if not outcome.done and len(path) < self.task.horizon:
            for agent, text in observe_all(self.task, outcome.state).items():
                chat = self.players[agent].chat
                observations[agent] = (
                    chat.continuation(text, last[agent]) if agent in last else chat.open(text)
                )
        node = Node(
            index=len(self.trees[tree]),
            parent=None if parent is None else parent[0].index,
            path=path,
            state=outcome.state,
            observations=observations,
            global_info=self.task.global_info(outcome.state),
            actions=actions,
            reward=outcome.reward,
            local_rewards=outcome.local_rewards,
            done=outcome.done,
            metrics={} if observations else dict(self.task.metrics(outcome.state)),
        )
        self.trees[tree].append(node)
        return node

    def _episode(self, at: _Live) -> int:
        return self.first_episode + at.tree
