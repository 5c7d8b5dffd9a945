"""Evaluates a task in many concurrent episodes. Each agent is reached at its endpoint."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from colearn.config import EvaluationSettings
from colearn.contract import Credit, DecPOMDP
from colearn.contract.seeding import derive_seed
from colearn.deploy.client.async_agent import AsyncRemoteAgent
from colearn.errors import ColearnError
from colearn.methods.credit.shared_reward import SharedReward
from colearn.training.evaluation.played import evaluation_items

from .episode import PlayedEpisode, PlaySetting, Tell, play_episode
from .person import Person
from .result import Played

AT_ONCE = 16


async def play(
    task: DecPOMDP[Any, Any],
    agents: Mapping[str, AsyncRemoteAgent | Person],
    settings: EvaluationSettings,
    *,
    seed: int,
    at_once: int = AT_ONCE,
    pool: Executor | None = None,
    credit: Credit = SharedReward(),  # noqa: B008 - a frozen strategy without state
    tell: Tell | None = None,
) -> Played:
    """Play the episodes of a split. Items, seeds and metrics are the same as in `evaluate_team`.

    The agents must not be open yet. `pool` executes the task's steps. Without a pool, a single
    thread executes the steps one at a time, as in the trainer. `tell` receives an event `planned`
    with agents and items, then the events of the module `episode`, then `finished` with the
    metrics.

    Errors: RemoteError or ConfigError if an agent cannot be reached or used at the start (an agent
    lost later ends only its episode); TaskError if the task breaks its contract.
    """
    items, split_size = evaluation_items(task, settings)
    evaluation = derive_seed(seed, "evaluation")
    async with _opened(
        task, agents, seed=evaluation, greedy=settings.greedy, pool=pool, tell=tell
    ) as room:
        if tell is not None:
            endpoints = {name: agent.endpoint.shown for name, agent in agents.items()}
            tell({"kind": "planned", "agents": endpoints, "items": [str(item) for item in items]})
        played = Played(
            await _all(room, items, at_once),
            settings,
            split_size,
            task.pays,
            credit,
        )
    if tell is not None:
        tell({"kind": "finished", "metrics": played.metrics, "lost": len(played.lost)})
    return played


async def play_item(
    task: DecPOMDP[Any, Any],
    agents: Mapping[str, AsyncRemoteAgent | Person],
    item: Any,
    *,
    seed: int = 0,
    greedy: bool = True,
) -> PlayedEpisode:
    """Play one item, which need not be in a split, with a deployed team.

    The state of the episode's last node is the result. The agents must not be open yet.

    Errors: as for `play`; an agent lost during the episode is reported in `PlayedEpisode.lost`.
    """
    async with _opened(task, agents, seed=seed, greedy=greedy) as room:
        return await play_episode(room, 0, item)


@asynccontextmanager
async def _opened(
    task: DecPOMDP[Any, Any],
    agents: Mapping[str, AsyncRemoteAgent | Person],
    *,
    seed: int,
    greedy: bool,
    pool: Executor | None = None,
    tell: Tell | None = None,
) -> AsyncIterator[PlaySetting]:
    """Context in which the agents are open and a thread executes the task's functions."""
    async with AsyncExitStack() as stack:
        for agent in agents.values():
            await stack.enter_async_context(agent)
        # stack.enter_context would wait for a hanging step when the play session is interrupted
        thread = ThreadPoolExecutor(1)
        try:
            yield PlaySetting(
                task=task,
                agents=agents,
                seed=seed,
                greedy=greedy,
                thread=thread,
                steps=thread if pool is None else pool,
                tell=tell,
            )
        finally:
            thread.shutdown(wait=False, cancel_futures=True)


async def _all(room: PlaySetting, items: list[Any], at_once: int) -> list[PlayedEpisode]:
    """Returns every item's episode, in order; at most `at_once` episodes run concurrently."""
    episodes: dict[int, PlayedEpisode] = {}

    async def work(waiting: Iterator[tuple[int, Any]]) -> None:
        for number, item in waiting:
            episodes[number] = await play_episode(room, number, item)

    waiting = iter(enumerate(items))
    mistake: ColearnError | None = None
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(at_once, len(items))):
                group.create_task(work(waiting))
    except* ColearnError as errors:
        mistake = next(error for error in errors.exceptions if isinstance(error, ColearnError))
    if mistake is not None:
        raise mistake
    return [episodes[number] for number in range(len(items))]
