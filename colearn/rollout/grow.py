"""Grows trees for training, evaluation, play and the dry run, and counts what they cost.

The `Driver` requests actions and executes joint actions for all trees that grow together.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

from colearn.agents.cast.seats import Own
from colearn.contract import (
    ActionRequest,
    Cast,
    Credit,
    DecPOMDP,
    Player,
    Rollout,
    Services,
    TokenAnswer,
    Uncertainty,
)
from colearn.contract.seeding import derive_rng
from colearn.credit.shared_reward import SharedReward
from colearn.errors import ConfigError
from colearn.types import Tree

from .executors import Beside, CallingThread, TurnSteps, run_in
from .grow_tree import Barrier, advance, first_error
from .growth import Branch, Growth
from .quick_calls import QuickCalls

Order = Literal["lockstep", "free"]

AT_ONCE = 256
"""Maximum number of threads. The number can be large, because nearly all threads wait for slow
calls."""


@dataclass(slots=True)
class Counts:
    """Counters summed over the trees of one or several rollouts."""

    generations: int = 0
    """Number of actions sampled, summed over agents. Proposition 4.3 counts these model calls."""
    joint_actions: int = 0
    """Number of joint actions executed, that is, environment steps."""
    tokens: int = 0
    """Number of tokens sampled, summed over agents."""
    response_seconds: list[float] = field(default_factory=list)
    """Durations of requests in seconds. In lockstep order, only the slowest request of each turn is
    listed, because engines run concurrently. In free order, every request is listed with the time
    from joining a batch to the answer."""

    @property
    def tokens_per_action(self) -> float:
        """Mean number of tokens per action. The mean is 0 if no action was sampled, for example
        because a task's program called no agent."""
        return self.tokens / max(self.generations, 1)

    def answered(self, answers: Iterable[TokenAnswer]) -> None:
        """Count the answers that one agent's player gave."""
        for answer in answers:
            self.generations += 1
            self.tokens += len(answer.action.tokens)

    def add(self, other: Counts) -> None:
        """Add the counts of another collection, and append the response times of that
        collection."""
        self.generations += other.generations
        self.joint_actions += other.joint_actions
        self.tokens += other.tokens
        self.response_seconds += other.response_seconds


def grow(
    task: DecPOMDP[Any, Any],
    items: Sequence[Any],
    players: Mapping[str, Player],
    shape: Rollout,
    *,
    seed: int,
    credit: Credit = SharedReward(),  # noqa: B008 - a frozen strategy without state
    cast: Cast = Own(),  # noqa: B008
    first_episode: int = 0,
    greedy: bool = False,
    pool: Executor | None = None,
    order: Order = "lockstep",
    at_once: int | None = None,
    uncertainty: Uncertainty | None = None,
) -> tuple[list[Tree[Any]], Counts]:
    """Play the episodes of every item to the end. The seed and the episode numbers determine all
    randomness.

    `cast` assigns `players`, by name, to the task's agents. With `order` "lockstep", all trees
    advance turn by turn, and results are repeatable bit for bit. With `order` "free", no tree waits
    for another tree. `at_once` is the maximum number of items whose trees grow together (None:
    unlimited). This maximum also limits the size of the generators' caches. `uncertainty` is for
    shapes that read a critic (`Rollout.reads_critic`).

    Errors: TaskError if the task violates its contract; ConfigError from a generator.
    """
    trees: list[Tree[Any]] = []
    counts = Counts()
    wave = at_once or max(1, len(items))
    for start in range(0, len(items), wave):
        first, wave_items = first_episode + start, items[start : start + wave]
        growths = list(
            plant(
                task, wave_items, players, shape, seed=seed, credit=credit, cast=cast, first=first
            )
        )
        driver = Driver(order, greedy=greedy, pool=pool)
        driver.grow(growths)
        _grow_further(driver, growths, uncertainty)
        trees += [growth.tree() for growth in growths]
        counts.add(driver.counts)
    return trees, counts


def plant(
    task: DecPOMDP[Any, Any],
    items: Sequence[Any],
    players: Mapping[str, Player],
    shape: Rollout,
    *,
    seed: int,
    credit: Credit,
    cast: Cast,
    first: int,
) -> Iterator[Growth]:
    """Create the trees of every item, before growth; `first` is the number of the first episode.
    Errors: ConfigError if a tree's shape reads the critic and `shape`, which is checked when a run
    is resolved, does not."""
    agents = tuple(task.agents)
    for episode, item in enumerate(items, start=first):
        seats = cast.seats(item, episode, agents, tuple(players), derive_rng(seed, "cast", episode))
        shapes = shape.trees(item, agents, derive_rng(seed, "trees", episode))
        for member, tree_shape in enumerate(shapes):
            if tree_shape.reads_critic and not shape.reads_critic:
                raise ConfigError(
                    f"rollout.trees: {type(shape).__name__} plants a {type(tree_shape).__name__} "
                    "that reads the critic; return True from its reads_critic, too"
                )
            yield Growth(
                task,
                item,
                tree_shape,
                credit,
                players,
                seats,
                seed=seed,
                episode=episode,
                member=member,
            )


def _grow_further(
    driver: Driver, growths: Sequence[Growth], uncertainty: Uncertainty | None
) -> None:
    """Grow the trees of shapes that choose nodes of a grown tree further. Errors: TypeError if such
    a shape reads a critic and there is none."""
    growths = [growth for growth in growths if growth.shape.revisits]
    unsure: Sequence[Mapping[tuple[int, ...], float]] = [{}] * len(growths)
    readers = [growth.shape for growth in growths if growth.shape.reads_critic]
    if readers:
        if uncertainty is None:
            raise TypeError(f"{type(readers[0]).__name__} needs a critic's uncertainty")
        unsure = uncertainty([growth.tree() for growth in growths])
    if growths:
        driver.grow(
            growths,
            [
                growth.resume(uncertainties)
                for growth, uncertainties in zip(growths, unsure, strict=True)
            ],
        )


class Driver:
    """Advances all branches of several trees, which share the engines of their players.

    In the free order a slow step, tool or player delays no other branch. Requests join the batch
    that their engine is decoding, so batches depend on timing. Samples do not depend on timing,
    except for rounding within a batch. In lockstep, a barrier holds the requests of each branch
    until all other branches have reached the same turn. The requests of a turn form one batch per
    engine, so results are repeatable bit for bit.
    """

    def __init__(
        self, order: Order = "lockstep", *, greedy: bool = False, pool: Executor | None = None
    ) -> None:
        self.order, self.greedy, self.pool = order, greedy, pool
        self.counts = Counts()

    def grow(
        self, growths: Sequence[Growth], resumed: Sequence[Sequence[Branch]] | None = None
    ) -> None:
        """Grow every tree to its end: from its root, or further from its nodes in `resumed`.

        Errors: TaskError if the task violates its contract; ConfigError from a generator.
        """
        caller = CallingThread()
        before = len(growths)  # roots are no joint actions
        if resumed is not None:
            before = sum(len(growth.nodes) for growth in growths)
        else:
            for growth in growths:
                growth.prepare()
        with (
            ThreadPoolExecutor(AT_ONCE, thread_name_prefix="task") as threads,
            ThreadPoolExecutor(AT_ONCE, thread_name_prefix="step") as steps,
        ):
            free, calls = self.order == "free", QuickCalls(caller)
            step: Beside = partial(calls, steps)
            if self.pool is not None:
                step = partial(run_in, self.pool)
            elif not free:
                at_once = all(Services.of(growth.task).steps_at_once for growth in growths)
                step = TurnSteps(caller, steps, at_once=at_once)
            caller.run(
                self._all(
                    growths,
                    resumed,
                    None if free else Barrier(len(growths)),
                    beside=partial(calls, threads) if free else caller,
                    step=step,
                )
            )
        self.counts.joint_actions += sum(len(growth.nodes) for growth in growths) - before

    async def _all(
        self,
        growths: Sequence[Growth],
        resumed: Sequence[Sequence[Branch]] | None,
        barrier: Barrier | None,
        **executors: Any,
    ) -> None:
        by_turn: dict[int, list[float]] = {}

        async def act(request: ActionRequest) -> list[TokenAnswer]:
            turn = None if barrier is None else barrier.turn
            answers = await request.player.act(
                replace(request, greedy=True) if self.greedy else request
            )
            self.counts.answered(answers)
            seconds = max((answer.seconds for answer in answers), default=0.0)
            if turn is None:
                self.counts.response_seconds.append(seconds)
            else:
                by_turn.setdefault(turn, []).append(seconds)
            return answers

        try:
            async with asyncio.TaskGroup() as group:
                for number, growth in enumerate(growths):
                    live = None if resumed is None else resumed[number]
                    group.create_task(
                        advance(
                            growth, act, barrier=barrier, number=number, resumed=live, **executors
                        )
                    )
        except BaseExceptionGroup as failures:
            raise first_error(failures) from None
        self.counts.response_seconds += [max(seconds) for seconds in by_turn.values()]
