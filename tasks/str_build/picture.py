"""Picture for the report: the target next to the build."""

from __future__ import annotations

from collections.abc import Sequence

from colearn.contract.picture import Cell, Panel, Picture

from ..block_colours import BLOCK_COLOURS
from ..blocks import Block, target_cells


def picture(rows: Sequence[str], blocks: Sequence[Block], agents: Sequence[str]) -> Picture:
    """A picture with two panels: the '#' cells of the target grid (top row first), and the blocks
    with their owners."""
    top, target = len(rows) - 1, target_cells(rows)
    target_marks = {(x, top - y): Cell() for x, y in target}
    built = {at: Cell(mark="missing") for at in target_marks}
    for block in blocks:
        at = (block.cell[0], top - block.cell[1])
        built[at] = Cell(block.name, agents[block.owner], "" if at in target_marks else "extra")
    size = len(rows[0]), len(rows)
    group = Panel("target", *size, target_marks), Panel("built", *size, built)
    return Picture(groups=(group,), colours=BLOCK_COLOURS)
