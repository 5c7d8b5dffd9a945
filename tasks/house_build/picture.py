"""Picture for the report: the blueprint next to the build, layer by layer."""

from __future__ import annotations

from collections.abc import Sequence

from colearn.contract.picture import Cell, Mark, Panel, Picture

from ..block_colours import BLOCK_COLOURS
from .houses import House
from .world import PlacedBlock


def picture(
    house: House, blocks: Sequence[PlacedBlock], agents: Sequence[str], *, caption: str
) -> Picture:
    """A group of two panels for each layer, from the ground up; the front row is drawn lowest."""
    target = dict(house.blocks)
    width, height, depth = house.size
    layers: list[tuple[dict[tuple[int, int], Cell], dict[tuple[int, int], Cell]]]
    layers = [({}, {}) for _ in range(height)]
    for (x, y, z), name in target.items():
        at = (x, depth - 1 - z)
        layers[y][0][at] = Cell(name)
        layers[y][1][at] = Cell(name, mark="missing")
    for block in blocks:
        x, y, z = block.cell
        layers[y][1][x, depth - 1 - z] = Cell(
            block.name, agents[block.owner], _mark(block, target.get(block.cell))
        )
    groups = tuple(
        (
            Panel(f"layer {y + 1}", width, depth, planned),
            Panel("built", width, depth, built),
        )
        for y, (planned, built) in enumerate(layers)
    )
    return Picture(groups=groups, colours=BLOCK_COLOURS, caption=caption)


def _mark(block: PlacedBlock, expected: str | None) -> Mark:
    if expected is None:
        return "extra"
    return "" if expected == block.name else "wrong"
