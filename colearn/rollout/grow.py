"""Grows trees for training, evaluation, play and the dry run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any

from colearn.agents.cast.seats import Own
from colearn.contract import Cast, Credit, DecPOMDP, Player, Rollout
from colearn.contract.seeding import derive_rng
from colearn.credit.team import SharedReward
from colearn.types import Tree

from .counts import Counts
from .driver import Driver, Order
from .growth import Growth


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
) -> tuple[list[Tree[Any]], Counts]:
    """Play every item to its end. The seed and the episode numbers determine all randomness.

    `cast` assigns `players`, by name, to the task's agents. With `order` "lockstep" all trees
    advance turn by turn, bit for bit repeatable; with "free" no tree waits for another. `at_once`
    bounds the number of items whose trees grow together, which bounds the generators' caches. None:
    all of them.

    Errors: TaskError if the task breaks its contract, ConfigError from a generator.
    """
    trees: list[Tree[Any]] = []
    counts = Counts()
    wave = at_once or max(1, len(items))
    for start in range(0, len(items), wave):
        first, some = first_episode + start, items[start : start + wave]
        growths = list(
            plant(task, some, players, shape, seed=seed, credit=credit, cast=cast, first=first)
        )
        driver = Driver(order, greedy=greedy, pool=pool)
        driver.grow(growths)
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
    """The ungrown trees of every item; `first` is the first episode's number."""
    agents = tuple(task.agents)
    for episode, item in enumerate(items, start=first):
        seats = cast.seats(item, episode, agents, tuple(players), derive_rng(seed, "cast", episode))
        shapes = shape.trees(item, agents, derive_rng(seed, "trees", episode))
        for member, tree_shape in enumerate(shapes):
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
