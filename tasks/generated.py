"""Generated items with disjoint train and test splits for every seed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar, overload

import numpy as np

from colearn.contract.seeding import derive_rng
from colearn.errors import ConfigError

Item = TypeVar("Item")

TEST_SHARE = 4
"""Of all possible instances, one in TEST_SHARE belongs to the test split."""
_PATIENCE = 1000
"""Number of consecutive draws without a new instance after which the instances count as
exhausted."""


def belongs_to_test(key: str) -> bool:
    """Whether the instance that `key` describes is a test instance. The result depends only on the
    instance, not on the seed, the sizes or the order of drawing."""
    return hashlib.blake2b(key.encode(), digest_size=8).digest()[0] % TEST_SHARE == 0


class FreshItems(Sequence[Item], Generic[Item]):
    """A sequence of training items of any length. An item is drawn when it is read: item k is a
    function of the seed and k. If there are few possible instances, two items may be equal."""

    def __init__(
        self,
        draw: Callable[[np.random.Generator], Item],
        key: Callable[[Item], str],
        *,
        size: int,
        seed: int,
        remedy: str,
    ) -> None:
        self.draw, self.key, self.size, self.seed, self.remedy = draw, key, size, seed, remedy

    def __len__(self) -> int:
        return self.size

    @overload
    def __getitem__(self, number: int) -> Item: ...
    @overload
    def __getitem__(self, number: slice) -> tuple[Item, ...]: ...
    def __getitem__(self, number: int | slice) -> Item | tuple[Item, ...]:
        """Errors: ConfigError if only test instances are drawn."""
        places = range(self.size)[number]
        if isinstance(places, range):
            return tuple(self._drawn(place) for place in places)
        return self._drawn(places)

    def _drawn(self, place: int) -> Item:
        rng = derive_rng(self.seed, "fresh", place)
        for _ in range(_PATIENCE):
            item = self.draw(rng)
            if not belongs_to_test(self.key(item)):
                return item
        raise ConfigError(f"task.fresh: no instance to train on was found; {self.remedy}")


def draw_splits(
    draw: Callable[[np.random.Generator], Item],
    key: Callable[[Item], str],
    *,
    sizes: Mapping[str, int],
    seed: int,
    remedy: str,
    fresh: bool = False,
) -> dict[str, Sequence[Item]]:
    """`sizes[split]` different items for 'train' and for 'test', drawn by `draw`. With `fresh`, the
    training items are `FreshItems`.

    key: returns the text of an instance; instances with equal text are the same.
    Errors: ConfigError with `remedy` if there are too few different instances.
    """
    splits: dict[str, Sequence[Item]] = {}
    for split, size in sizes.items():
        if fresh and split == "train":
            splits[split] = FreshItems(draw, key, size=size, seed=seed, remedy=remedy)
            continue
        rng = derive_rng(seed, "items", split)
        items: dict[str, Item] = {}
        misses = 0
        while len(items) < size and misses < _PATIENCE:
            item = draw(rng)
            name = key(item)
            if name in items or belongs_to_test(name) != (split == "test"):
                misses += 1
            else:
                items[name] = item
                misses = 0
        if len(items) < size:
            raise ConfigError(
                f"task.{split}: {size} different instances asked for, {len(items)} found; {remedy}"
            )
        splits[split] = tuple(items.values())
    return splits
