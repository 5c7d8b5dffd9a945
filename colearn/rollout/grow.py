"""Grows trees for training, evaluation and the dry run, in one of two orders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Any, Literal

from colearn.contract import Cast, Credit, DecPOMDP, Player, Rollout
from colearn.contract.part_errors import calling_part
from colearn.contract.seeding import derive_rng
from colearn.contract.types import Tree
from colearn.methods.credit.shared_reward import SharedReward
from colearn.rollout.agents.cast.seats import Own

from .counts import Counts
from .free_order import grow_freely
from .growth import Growth
from .lockstep import grow_in_lockstep

Order = Literal["lockstep", "free"]


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
    """Play the episodes of every item to the end. The seed and the episode numbers determine all
    randomness.

    `cast` assigns `players`, by name, to the task's agents. With `order` "lockstep", all trees
    advance turn by turn, and results are repeatable bit for bit. With `order` "free", no tree waits
    for another tree. `at_once` is the maximum number of items whose trees grow together (None:
    unlimited). This maximum also limits the size of the generators' caches.

    Errors: TaskError if the task violates its contract; ConfigError from a generator.
    """
    trees: list[Tree[Any]] = []
    counts = Counts()
    grow_all = grow_freely if order == "free" else grow_in_lockstep
    grow_trees = partial(grow_all, counts=counts, greedy=greedy, pool=pool)
    wave = at_once or max(1, len(items))
    for start in range(0, len(items), wave):
        first, wave_items = first_episode + start, items[start : start + wave]
        growths = list(
            plant(
                task, wave_items, players, shape, seed=seed, credit=credit, cast=cast, first=first
            )
        )
        grow_trees(growths)
        trees += [growth.tree() for growth in growths]
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
    """Create the trees of every item, before growth; `first` is the number of the first episode."""
    agents = tuple(task.agents)
    for episode, item in enumerate(items, start=first):
        seats = cast.seats(item, episode, agents, tuple(players), derive_rng(seed, "cast", episode))
        with calling_part("algorithm.rollout", shape):
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
