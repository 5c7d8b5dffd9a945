"""Generated items whose train and test splits cannot meet, whatever the seed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import TypeVar

import numpy as np

from colearn.errors import ConfigError
from colearn.seeding import derive_rng

Item = TypeVar("Item")

TEST_SHARE = 4
"""One in so many of all instances there are belongs to the test split."""
_PATIENCE = 1000
"""Draws in a row that bring nothing new before a setting is taken to have no more instances."""


def belongs_to_test(key: str) -> bool:
    """Whether the instance that `key` spells out is a test instance: a property of the instance
    alone, so that no seed, size or order of drawing moves it."""
    return hashlib.blake2b(key.encode(), digest_size=8).digest()[0] % TEST_SHARE == 0


def draw_splits(
    draw: Callable[[np.random.Generator], Item],
    key: Callable[[Item], str],
    *,
    sizes: Mapping[str, int],
    seed: int,
    remedy: str,
) -> dict[str, tuple[Item, ...]]:
    """`sizes[split]` different items for 'train' and for 'test', drawn by `draw`.

    key: spells an instance out; instances of one key are one.
    Errors: ConfigError with `remedy` where there are too few different instances.
    """
    splits = {}
    for split, size in sizes.items():
        rng = derive_rng(seed, "items", split)
        found: dict[str, Item] = {}
        misses = 0
        while len(found) < size and misses < _PATIENCE:
            item = draw(rng)
            name = key(item)
            if name in found or belongs_to_test(name) != (split == "test"):
                misses += 1
            else:
                found[name] = item
                misses = 0
        if len(found) < size:
            raise ConfigError(
                f"task.{split}: {size} different instances asked for, {len(found)} found; {remedy}"
            )
        splits[split] = tuple(found.values())
    return splits
