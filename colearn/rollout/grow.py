"""Rollout engine for training, evaluation, play and the dry run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any, Literal

from colearn.cast.seats import Own
from colearn.contract import Cast, Credit, DecPOMDP, Player, Rollout
from colearn.credit.team import Team
from colearn.seeding import derive_rng
from colearn.types import Tree

from .counts import Counts
from .free_order import Free
from .growth import Growth
from .lockstep import Lockstep

Order = Literal["lockstep", "free"]


def grow(
    task: DecPOMDP[Any, Any],
    items: Sequence[Any],
    players: Mapping[str, Player],
    shape: Rollout,
    *,
    seed: int,
    credit: Credit = Team(),  # noqa: B008 - a frozen strategy without state
    cast: Cast = Own(),  # noqa: B008
    first_episode: int = 0,
    greedy: bool = False,
    pool: Executor | None = None,
    order: Order = "lockstep",
) -> tuple[list[Tree[Any]], Counts]:
    """Play every item out. Episode numbers, with the seed, fix all randomness.

    `players` by name; `cast` says who of them sits where. `order` is who waits for whom: all for
    the slowest (`lockstep`, bit for bit repeatable), or nobody for another tree (`free`).

    Errors: TaskError where the task breaks its contract, ConfigError from a generator.
    """
    growths = list(
        plant(task, items, players, shape, seed=seed, credit=credit, cast=cast, first=first_episode)
    )
    driver = (Lockstep if order == "lockstep" else Free)(greedy=greedy, pool=pool)
    driver.grow(growths)
    return [growth.tree() for growth in growths], driver.counts


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
    """The trees of every item, before anything has grown; `first` is the first episode's number."""
    agents = tuple(task.agents)
    for episode, item in enumerate(items, start=first):
        seats = cast.seats(item, episode, agents, tuple(players), derive_rng(seed, "cast", episode))
        shapes = shape.trees(item, agents, derive_rng(seed, "trees", episode))
        for member, own in enumerate(shapes):
            yield Growth(
                task,
                item,
                own,
                credit,
                players,
                seats,
                seed=seed,
                episode=episode,
                member=member,
            )
