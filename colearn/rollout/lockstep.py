"""Lockstep growth: all live nodes of a turn advance together, bit for bit repeatable."""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from typing import Any

from colearn.contract import Ask, Spoken, Table
from colearn.types import Outcome

from .counts import Counts
from .growth import Edge, Growth, Live, Tried
from .transition import transition

_At = tuple[Growth, Live]


class Lockstep:
    """Requests to one table form a batch; tables of different places run concurrently."""

    def __init__(self, *, greedy: bool = False, pool: Executor | None = None) -> None:
        self.greedy, self.pool = greedy, pool
        self.counts = Counts()

    def grow(self, growths: Sequence[Growth]) -> None:
        """Grow every tree to its end.

        Errors: TaskError if the task breaks its contract, ConfigError from a generator.
        """
        with ThreadPoolExecutor(thread_name_prefix="table") as threads:
            live = [(growth, at) for growth in growths for at in growth.start()]
            while live:
                live = self._turn(live, threads)

    def _turn(self, live: Sequence[_At], threads: Executor) -> list[_At]:
        """Generate, pair, step and settle all live nodes."""
        drawn = self._speak(live, threads)
        tried: list[list[Tried]] = [[] for _ in live]
        while True:
            rounds = [
                growth.edges(at, said, before)
                for (growth, at), said, before in zip(live, drawn, tried, strict=True)
            ]
            edges = [edge for node_edges in rounds for edge in node_edges]
            if not edges:
                break
            outcomes = iter(self._step(edges))
            for node_edges, before in zip(rounds, tried, strict=True):
                before += [(edge, next(outcomes)) for edge in node_edges]
        following: list[_At] = []
        for (growth, at), node_tried in zip(live, tried, strict=True):
            following += [(growth, child) for child in growth.settle(at, node_tried)]
        return following

    def _step(self, edges: Sequence[Edge]) -> list[Outcome[Any]]:
        """The outcome of each joint action."""
        self.counts.joint_actions += len(edges)
        stepping = [edge.stepping for edge in edges]
        if self.pool is None:
            return [transition(*one) for one in stepping]
        return list(self.pool.map(transition, *zip(*stepping, strict=True)))

    def _speak(self, live: Sequence[_At], threads: Executor) -> list[dict[str, list[Spoken]]]:
        """The answers of every acting seat at every node."""
        asked: dict[Table, list[tuple[int, Ask]]] = {}
        for number, (growth, at) in enumerate(live):
            for ask in growth.asks(at):
                asked.setdefault(ask.player.table, []).append((number, ask))

        places: dict[Hashable, list[Table]] = {}
        for table in asked:
            places.setdefault(table.place, []).append(table)
        at_once = threads.map if len(places) > 1 else map
        drawn: list[dict[str, list[Spoken]]] = [{} for _ in live]
        slowest = 0.0
        for answered in at_once(partial(self._in_turn, asked), places.values()):
            for table, answers, seconds in answered:
                slowest = max(slowest, seconds)
                for (number, ask), options in zip(asked[table], answers, strict=True):
                    drawn[number][ask.seat] = options
                    self.counts.spoke(options)
        self.counts.response_seconds.append(slowest)
        return drawn

    def _in_turn(
        self, asked: Mapping[Table, Sequence[tuple[int, Ask]]], tables: Sequence[Table]
    ) -> list[tuple[Table, list[list[Spoken]], float]]:
        """Answers of one place's tables, each with its seconds."""
        answered = []
        for table in tables:
            started = time.perf_counter()
            answers = table.speak([ask for _, ask in asked[table]], greedy=self.greedy)
            answered.append((table, answers, time.perf_counter() - started))
        return answered
