"""Reward of a build: cell counts compared with the blueprint, in two variants."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .houses import House
from .world import PlacedBlock

HIGHEST = {"paper": 2.0, "comlrl": 1.0}
SOLVED = {"paper": 1.9, "comlrl": 0.9}
"""Raw rewards by variant: `HIGHEST` is the maximum; an episode is done if its raw reward exceeds
`SOLVED`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildCounts:
    """Counts from which rewards and metrics are computed."""

    total: int
    """Number of cells of the house."""
    background: int
    """Cells of the house's bounding box that are air in the blueprint."""
    exact: int
    """Cells of the house that hold the block of the blueprint."""
    occupied: int
    """Cells of the house that hold a block of any kind."""
    extra: int
    """Blocks outside the house."""

    @property
    def iou(self) -> float:
        """Intersection over union of blocks and house, ignoring kinds, in [0, 1]."""
        return self.occupied / (self.total + self.extra)

    @property
    def match(self) -> float:
        """The share of all cells, air included, that match the blueprint, in [0, 1]."""
        matching = self.exact + self.background - self.extra
        return matching / (self.total + self.background)


def survey(blocks: Sequence[PlacedBlock], house: House) -> BuildCounts:
    """Compare the blocks with the blueprint and count them."""
    target = dict(house.blocks)
    occupied = sum(block.cell in target for block in blocks)
    return BuildCounts(
        total=len(target),
        background=math.prod(house.size) - len(target),
        exact=sum(target.get(block.cell) == block.name for block in blocks),
        occupied=occupied,
        extra=len(blocks) - occupied,
    )


def raw_reward(result: BuildCounts, harm: float, *, variant: str, agents: int) -> float:
    """The reward before the shift, at most `HIGHEST`: F.3 of the paper, or CoMLRL's formula.

    `harm` is the share of the players' health points that the spiders took, in [0, 1].
    """
    if variant == "comlrl":
        return result.match - (0.1 * harm if agents > 1 else 0.0)
    return 2.0 * result.exact / result.total - 1.5 * result.extra / result.total - 0.2 * harm


def lowest_reward(result: BuildCounts, variant: str) -> float:
    """A lower bound of the raw reward of any build of the same blueprint."""
    if variant == "comlrl":
        return -0.1
    return -1.5 * result.background / result.total - 0.2
