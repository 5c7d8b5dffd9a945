"""The colours in which reports draw Minecraft's blocks."""

from __future__ import annotations

from collections.abc import Mapping

BLOCK_COLOURS: Mapping[str, str] = {
    "oak_planks": "#b98a4e",
    "planks": "#b98a4e",
    "stone": "#8d9297",
    "stone_bricks": "#74797e",
    "stone_stairs": "#a9a08f",
    "white_concrete": "#e8eaec",
    "obsidian": "#43316b",
}
"""Maps a block to its colour, `#rrggbb`; the report chooses colours for other blocks."""
