"""Lockstep order: grows trees turn by turn. In each turn all players answer, all joint actions are
executed, and the new nodes are added."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Hashable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from colearn.contract import ActionRequest, Round, TokenAnswer
from colearn.contract.checked_task import CheckedTask
from colearn.contract.types import Outcome
from colearn.errors import TaskError
from colearn.rollout.agents.language import Language

from .counts import Counts
from .executors import CallingThread
from .growth import Branch, Growth, StepArguments
from .idle import needs_main_thread, timed, waits

_Asked = tuple[int, Language, ActionRequest]
"""The number of a request among those of its turn, its player, and the request."""

STEPS_AT_ONCE = 256
"""Maximum number of threads for steps that wait. Nearly all of these threads are idle."""


@dataclass(slots=True)
class _Turn:
    """A branch during one turn."""

    tree: int
    growth: Growth
    at: Branch
    candidates: dict[str, list[TokenAnswer]] = field(default_factory=dict)
    """The answers of each acting agent."""
    tried: list[Round] = field(default_factory=list)
    children: list[Branch] = field(default_factory=list)
    """The executed children of all rounds."""


def grow_in_lockstep(
    growths: Sequence[Growth],
    *,
    counts: Counts,
    greedy: bool = False,
    pool: Executor | None = None,
) -> None:
    """Grow every tree from its root to its end. All branches of all trees advance together, turn
    by turn.

    The requests of a turn form one batch per engine, in the order of trees and paths, so results
    are repeatable bit for bit. Steps run in `pool`, if there is one.

    Errors: TaskError if the task violates its contract; ConfigError from an engine.
    """
    for growth in growths:
        growth.prepare()
    turns = [_Turn(n, growth, at) for n, growth in enumerate(growths) for at in growth.start()]
    at_once = all(growth.task.steps_at_once for growth in growths)
    with ThreadPoolExecutor(STEPS_AT_ONCE, thread_name_prefix="step") as threads:
        steps = _Steps(pool, threads if at_once else None)
        while turns:
            turns.sort(key=lambda turn: (turn.tree, turn.at[0].path))
            _act(turns, counts, greedy=greedy)
            counts.joint_actions += _execute(turns, steps)
            turns = [
                _Turn(turn.tree, turn.growth, at)
                for turn in turns
                for at in turn.growth.settle(turn.at, turn.children, turn.tried)
            ]


def _act(turns: Sequence[_Turn], counts: Counts, *, greedy: bool) -> None:
    """Ask the players of all acting agents."""
    asked = [(turn, request) for turn in turns for request in turn.growth.requests(turn.at)]
    answers, seconds = _answers([replace(request, greedy=greedy) for _, request in asked])
    for (turn, request), candidates in zip(asked, answers, strict=True):
        turn.candidates[request.seat] = candidates
        counts.answered(candidates)
    counts.response_seconds.append(seconds)


def _execute(turns: Sequence[_Turn], steps: _Steps) -> int:
    """Execute the joint actions of a turn, and return their number. Shapes that compare siblings
    have several rounds."""
    executed_actions = 0
    while turns:
        planned: list[tuple[_Turn, Round, list[Branch]]] = []
        for turn in turns:
            growth, at = turn.growth, turn.at
            following = growth.next_round(at, turn.candidates, turn.tried)
            if following is not None:
                earlier = len(turn.children)
                children = growth.children(at, turn.candidates, following, earlier)
                planned.append((turn, following, children))
        arguments = [
            turn.growth.step_arguments(child) for turn, _, children in planned for child in children
        ]
        outcomes = iter(steps(arguments))
        executed_actions += len(arguments)
        for turn, following, children in planned:
            executed = [turn.growth.with_outcome(child, next(outcomes)) for child in children]
            turn.tried.append(turn.growth.credited(following, executed))
            turn.children += executed
        turns = [turn for turn, *_ in planned]
    return executed_actions


def _answers(requests: Sequence[ActionRequest]) -> tuple[list[list[TokenAnswer]], float]:
    """Ask all players of a turn: each engine for one batch, other players one request at a time.
    Engines at different places, and other players, run concurrently. Returns the answers, and the
    seconds of the slowest player."""
    answers: list[list[TokenAnswer]] = [[] for _ in requests]
    places: dict[Hashable, dict[int, list[_Asked]]] = {}
    others: list[int] = []
    for number, request in enumerate(requests):
        player = request.player
        if isinstance(player, Language):
            engines = places.setdefault(player.engine.place, {})
            engines.setdefault(id(player.engine), []).append((number, player, request))
        else:
            others.append(number)

    def generate(engines: Mapping[int, Sequence[_Asked]]) -> list[float]:
        seconds = []
        for batch in engines.values():
            began = time.perf_counter()
            for (number, *_), given in zip(batch, _generated(batch), strict=True):
                answers[number] = given
            seconds.append(time.perf_counter() - began)
        return seconds

    def of_engines() -> list[float]:
        if len(places) < 2:
            return [one for engines in places.values() for one in generate(engines)]
        with ThreadPoolExecutor(len(places), thread_name_prefix="engine") as threads:
            return [one for each in threads.map(generate, places.values()) for one in each]

    if not others:
        return answers, _slowest(of_engines())
    caller = CallingThread()

    async def all_players() -> tuple[list[float], list[list[TokenAnswer]]]:
        acting = (requests[number].player.act(requests[number]) for number in others)
        return await asyncio.gather(caller(of_engines), asyncio.gather(*acting))

    seconds, of_others = caller.run(all_players())
    for number, given in zip(others, of_others, strict=True):
        answers[number] = given
        seconds += [answer.seconds for answer in given]
    return answers, _slowest(seconds)


def _slowest(seconds: Sequence[float]) -> float:
    """The time of a turn whose players act beside each other."""
    return max(seconds, default=0.0)


def _generated(batch: Sequence[_Asked]) -> list[list[TokenAnswer]]:
    """Ask one engine for a batch."""
    versions = [player.version() for _, player, _ in batch]
    requests = [player.token_request(request) for _, player, request in batch]
    engine = batch[0][1].engine
    with engine.turn():
        generated = engine.generate(requests)
    return [
        player.completed(request, given, version)
        for (_, player, request), given, version in zip(batch, generated, versions, strict=True)
    ]


class _Steps:
    """Executes the joint actions of a turn in `pool`, else in the calling thread. Once a step has
    been observed to wait, for example for a judge or a server, all steps run in `threads`, if the
    task allows concurrent steps (`DecPOMDP.steps_at_once`).

    Threads do not speed up a step that mainly computes. A step that sets an alarm needs the main
    thread, so threads are no longer used after the first step that sets an alarm. Outcomes do not
    depend on threads, since the random numbers of a step depend only on the step's place in the
    tree.
    """

    def __init__(self, pool: Executor | None, threads: Executor | None) -> None:
        self._pool, self._threads = pool, threads
        self._waits = False

    def __call__(self, arguments: Sequence[StepArguments]) -> list[Outcome[Any]]:
        if self._pool is not None:
            return _together(self._pool, arguments)
        outcomes: list[Outcome[Any]] = []
        while len(outcomes) < len(arguments):
            if self._threads is not None and self._waits:
                try:
                    return outcomes + _together(self._threads, arguments[len(outcomes) :])
                except TaskError as error:
                    if not needs_main_thread(error):
                        raise
                self._threads = None
            outcome, idle, seconds = timed(CheckedTask.transition, arguments[len(outcomes)])
            self._waits = waits(idle, seconds)
            outcomes.append(outcome)
        return outcomes


def _together(pool: Executor, arguments: Sequence[StepArguments]) -> list[Outcome[Any]]:
    calls = [pool.submit(CheckedTask.transition, *each) for each in arguments]
    return [call.result() for call in calls]
