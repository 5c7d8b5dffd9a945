"""Blueprints of HouseBuild, and their generator."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from .world import Cell, upward

WALL, PILLAR, DOOR, ROOF = "white_concrete", "obsidian", "oak_planks", "stone"
ROOFS = ("ridge_x", "ridge_z", "hip", "flat")
DOORS = ("front", "right", "back", "left")


@dataclass(frozen=True, slots=True)
class House:
    """A blueprint: it defines the block of each cell of a box."""

    name: str
    size: Cell
    """The numbers of cells along x, y and z."""
    blocks: tuple[tuple[Cell, str], ...]
    """All cells that are not air, layer by layer."""

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class _Family:
    """A family of houses that differ in width, depth, roof and the side of the door."""

    widths: range
    depths: range
    walls: int
    """Height of the walls."""
    floor: bool
    stride: int
    """Step size through the combinations of a family; it is coprime to the number of
    combinations."""

    @property
    def count(self) -> int:
        return len(ROOFS) * len(DOORS) * len(self.widths) * len(self.depths)


FAMILIES: Mapping[str, _Family] = {
    "large": _Family(widths=range(5, 8), depths=range(5, 8), walls=3, floor=True, stride=29),
    "small": _Family(widths=range(3, 5), depths=range(3, 5), walls=1, floor=False, stride=13),
}
"""Families by the setting `size`: large houses like the paper's figure 3b, and small houses that
need few commands."""


def house_count(size: str) -> int:
    """The number of different houses of a size."""
    return FAMILIES[size].count


def make_house(size: str, number: int) -> House:
    """House `number` (from 0) of a size: concrete walls, an obsidian pillar in each corner, a
    wooden door and a stone roof."""
    family = FAMILIES[size]
    rest, roof = divmod(number * family.stride % family.count, len(ROOFS))
    rest, door = divmod(rest, len(DOORS))
    deep, wide = divmod(rest, len(family.widths))
    width, depth = family.widths[wide], family.depths[deep]
    blocks = dict(_walls(width, depth, family, DOORS[door]))
    height = 1 + max(y for _, y, _ in blocks)
    blocks |= dict.fromkeys(_roof(width, depth, height, ROOFS[roof]), ROOF)
    return House(
        name=f"{size}_{number}_{width}x{depth}_{ROOFS[roof]}_{DOORS[door]}",
        size=(width, 1 + max(y for _, y, _ in blocks), depth),
        blocks=tuple((cell, blocks[cell]) for cell in sorted(blocks, key=upward)),
    )


def _walls(width: int, depth: int, family: _Family, side: str) -> Iterator[tuple[Cell, str]]:
    ground = int(family.floor)
    door = {
        "front": (width // 2, 0),
        "right": (width - 1, depth // 2),
        "back": (width // 2, depth - 1),
        "left": (0, depth // 2),
    }[side]
    for x in range(width):
        for z in range(depth):
            if family.floor:
                yield (x, 0, z), WALL
            edges = (x in (0, width - 1)) + (z in (0, depth - 1))
            for level in range(family.walls if edges else 0):
                block = PILLAR if edges == 2 else WALL
                yield (
                    (x, ground + level, z),
                    DOOR if (x, z) == door and level < 2 else block,
                )


def _roof(width: int, depth: int, bottom: int, kind: str) -> Iterator[Cell]:
    """Returns the cells of a roof: solid layers, each of which is one cell smaller on the sloping
    sides. A flat roof has only the lowest layer."""
    along_x, along_z = int(kind in ("ridge_z", "hip")), int(kind in ("ridge_x", "hip"))
    ends = [math.ceil(n / 2) for n, slope in ((width, along_x), (depth, along_z)) if slope]
    for level in range(min(ends, default=1)):
        for x in range(level * along_x, width - level * along_x):
            for z in range(level * along_z, depth - level * along_z):
                yield x, bottom + level, z
