"""Items of Harvest: the choices of a season, and the train and test splits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from colearn.contract.seeding import derive_rng

CROPS = (("barley", "leeks", "oats", "wheat"), ("beans", "millet", "peas", "rye"))
"""Crops that sell, and crops that do not."""
PLACES = (("abbey", "harbour", "mill", "tower"), ("bakery", "brewery", "inn", "school"))
"""Places that buy, and places that do not."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Two words on offer, of which one is right."""

    offered: tuple[str, str]
    """Both words, in the order in which the agent reads them."""
    right: str


@dataclass(frozen=True, slots=True)
class Week:
    """The choices of one week."""

    crop: Choice
    place: Choice


Season = tuple[Week, ...]
"""An item."""


def draw_seasons(split: str, *, weeks: int, size: int, seed: int) -> tuple[Season, ...]:
    """`size` seasons. No pair of words is offered in both splits."""
    rng = derive_rng(seed, "harvest", split)
    crops, places = pairs(CROPS, split), pairs(PLACES, split)
    return tuple(
        tuple(Week(_drawn(crops, rng), _drawn(places, rng)) for _ in range(weeks))
        for _ in range(size)
    )


def pairs(words: tuple[Sequence[str], Sequence[str]], split: str) -> list[tuple[str, str]]:
    """The pairs of a right and a wrong word in a split. Of the 16 pairs, the test split has the 4
    whose words have the same position in their lists."""
    return [
        (right, wrong)
        for i, right in enumerate(words[0])
        for j, wrong in enumerate(words[1])
        if (i == j) == (split == "test")
    ]


def _drawn(pairs: Sequence[tuple[str, str]], rng: np.random.Generator) -> Choice:
    right, wrong = pairs[int(rng.integers(len(pairs)))]
    return Choice((right, wrong) if rng.integers(2) else (wrong, right), right)
