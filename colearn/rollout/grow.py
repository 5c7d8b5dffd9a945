"""Grows trees for training, evaluation and the dry run, in one of two orders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any, Literal, Protocol

from colearn.contract import Cast, Credit, DecPOMDP, Player, Rollout, Uncertainty
from colearn.contract.part_errors import calling_part
from colearn.contract.seeding import derive_rng
from colearn.contract.types import Tree
from colearn.errors import ConfigError
from colearn.methods.credit.shared_reward import SharedReward
from colearn.rollout.agents.cast.seats import Own

from .counts import Counts
from .growth import Branch, Growth
from .lockstep import Lockstep

Order = Literal["lockstep", "free"]


class Driver(Protocol):
    """Grows several trees, which share the engines of their players."""

    def grow(
        self, growths: Sequence[Growth], resumed: Sequence[Sequence[Branch]] | None = None
    ) -> None:
        """Grow every tree to its end: from its root, or further from its nodes in `resumed`."""


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
    driver = _driver(order, counts, greedy=greedy, pool=pool)
    wave = at_once or max(1, len(items))
    for start in range(0, len(items), wave):
        first, wave_items = first_episode + start, items[start : start + wave]
        growths = list(
            plant(
                task, wave_items, players, shape, seed=seed, credit=credit, cast=cast, first=first
            )
        )
        driver.grow(growths)
        _grow_further(driver, growths, uncertainty)
        trees += [growth.tree() for growth in growths]
    return trees, counts


def _driver(order: Order, counts: Counts, *, greedy: bool, pool: Executor | None) -> Driver:
    if order == "free":
        from .free_order import FreeOrder

        return FreeOrder(counts, greedy=greedy, pool=pool)
    return Lockstep(counts, greedy=greedy, pool=pool)


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
        with calling_part("algorithm.rollout", shape):
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
