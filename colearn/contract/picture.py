"""A picture of a state: grids of cells as plain data, which the report draws.

A task may implement `picture(state) -> Picture` in addition to `render(state) -> str`, the text for
terminals. Transcripts then hold the picture after each turn.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Literal, get_args

Mark = Literal["", "missing", "extra", "wrong"]
"""How a cell differs from the goal: a missing item, an extra item, or an item of the wrong kind."""

LARGEST = 1000
"""Maximum number of columns or rows of a panel."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell that holds an item or should hold an item."""

    kind: str = ""
    """Kind of the cell's item, or of the missing item; the kind determines the colour."""
    owner: str = ""
    """Name of the agent that placed the item."""
    mark: Mark = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """A titled grid of `columns` x `rows` cells.

    Errors: ValueError for a cell outside the grid or an unknown mark.
    """

    title: str
    columns: int
    rows: int
    cells: Mapping[tuple[int, int], Cell]
    """Cells by (column from the left, row from the top), both counted from 0; other cells are
    empty."""

    def __post_init__(self) -> None:
        if not 0 < self.columns <= LARGEST or not 0 < self.rows <= LARGEST:
            raise ValueError(
                f"panel '{self.title}': {self.columns} x {self.rows} cells; give 1 to {LARGEST}"
            )
        for (column, row), cell in self.cells.items():
            if not 0 <= column < self.columns or not 0 <= row < self.rows:
                raise ValueError(f"panel '{self.title}': cell {(column, row)} lies outside")
            if cell.mark not in get_args(Mark):
                raise ValueError(f"panel '{self.title}': unknown mark '{cell.mark}'")


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """Panels to draw, and their colours.

    Errors: ValueError for a colour that is not `#rrggbb`.
    """

    groups: tuple[tuple[Panel, ...], ...]
    """Panels by group, such as one group per layer; the panels of a group are drawn side by
    side."""
    colours: Mapping[str, str] = field(default_factory=dict)
    """`#rrggbb` by kind; other kinds get a colour from the report."""
    caption: str = ""

    def __post_init__(self) -> None:
        for kind, colour in self.colours.items():
            if not re.fullmatch(r"#[0-9a-fA-F]{6}", colour):
                raise ValueError(f"colour of '{kind}': {colour!r} is not #rrggbb")

    @property
    def panels(self) -> tuple[Panel, ...]:
        """All panels, in the order of the groups."""
        return tuple(chain.from_iterable(self.groups))

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of all cells in the order of the panels, without ''."""
        cells = chain.from_iterable(panel.cells.values() for panel in self.panels)
        return tuple(dict.fromkeys(cell.kind for cell in cells if cell.kind))

    def plain(self) -> dict[str, Any]:
        """The picture as JSON data. A cell is [column, row, kind, owner, mark]; kind and owner
        are indices into `kinds` and `owners`, -1 for none."""
        kinds = self.kinds
        cells = chain.from_iterable(panel.cells.values() for panel in self.panels)
        owners = tuple(dict.fromkeys(cell.owner for cell in cells if cell.owner))
        place = {name: number for number, name in enumerate(kinds)}
        seat = {name: number for number, name in enumerate(owners)}
        return {
            "kinds": list(kinds),
            "owners": list(owners),
            "colours": {kind: self.colours[kind] for kind in kinds if kind in self.colours},
            "caption": self.caption,
            "groups": [
                [
                    {
                        "title": panel.title,
                        "size": [panel.columns, panel.rows],
                        "cells": [
                            [*at, place.get(cell.kind, -1), seat.get(cell.owner, -1), cell.mark]
                            for at, cell in panel.cells.items()
                        ],
                    }
                    for panel in group
                ]
                for group in self.groups
            ],
        }

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> Picture:
        """The picture that `plain` returned as `data`.

        Errors: KeyError, IndexError, TypeError or ValueError for other data.
        """
        kinds, owners = (*map(str, data["kinds"]), ""), (*map(str, data["owners"]), "")

        def cell(kind: int, owner: int, mark: Mark) -> Cell:
            return Cell(kinds[int(kind)], owners[int(owner)], mark)

        def panel(entry: Mapping[str, Any]) -> Panel:
            columns, rows = map(int, entry["size"])
            cells = {(int(x), int(y)): cell(*rest) for x, y, *rest in entry["cells"]}
            return Panel(str(entry["title"]), columns, rows, cells)

        return cls(
            groups=tuple(tuple(map(panel, group)) for group in data["groups"]),
            colours={str(kind): str(colour) for kind, colour in data["colours"].items()},
            caption=str(data["caption"]),
        )
