"""Splits houses into rectangles and into a share for each agent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from .houses import House
from .world import Box, Cell, upward


def rectangles(blocks: Mapping[Cell, str]) -> tuple[Box, ...]:
    """Returns disjoint boxes, layer by layer, that together hold exactly `blocks`; each box is one
    layer high.

    Greedy: each box starts at the first remaining cell and extends along x, then along z, as far as
    the block is the same.
    """
    remaining = dict(blocks)
    boxes = []
    for start in sorted(blocks, key=upward):
        if start not in remaining:
            continue
        block = remaining[start]
        x, y, z = start
        while remaining.get((x + 1, y, z)) == block:
            x += 1
        while all(remaining.get((each, y, z + 1)) == block for each in range(start[0], x + 1)):
            z += 1
        box = Box(start, (x, y, z), block)
        for cell in box.cells():
            del remaining[cell]
        boxes.append(box)
    return tuple(boxes)


def resource_limit(count: int, agents: int) -> int:
    """Maximum number of cells of a block that one agent may fill, if the house has `count` of them:
    about 1.5 times an equal share."""
    return -(-count // agents) + count // (2 * agents)


def block_counts(house: House) -> dict[str, int]:
    """Number of cells of each block, in the order in which the blocks appear."""
    counts: dict[str, int] = {}
    for _, block in house.blocks:
        counts[block] = counts.get(block, 0) + 1
    return counts


@lru_cache(maxsize=256)
def shares(house: House, agents: int) -> tuple[tuple[Box, ...], ...]:
    """Returns, by agent, the part of the house that the agent builds if all agents place the same
    share of each block.

    The cells of a block, layer by layer, are cut into runs of at most ceil(count / agents), which
    is within `resource_limit`. Each agent's run is then cut into rectangles.
    """
    cells_by_agent: list[dict[Cell, str]] = [{} for _ in range(agents)]
    for block, count in block_counts(house).items():
        cells = [cell for cell, name in house.blocks if name == block]
        for number, cell in enumerate(cells):
            cells_by_agent[number * agents // count][cell] = block
    return tuple(rectangles(cells) for cells in cells_by_agent)


def pieces(house: House, agents: int) -> tuple[Box, ...]:
    """Returns the rectangles of all shares, layer by layer; together they are exactly the house."""
    return in_order(box for boxes in shares(house, agents) for box in boxes)


def in_order(boxes: Iterable[Box]) -> tuple[Box, ...]:
    """The boxes layer by layer, row by row."""
    return tuple(sorted(boxes, key=lambda box: upward(box.low)))
