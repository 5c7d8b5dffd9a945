"""Draws pictures as inline SVG. All cells with the same colour and mark share one path, which keeps
pages small."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from colearn.contract.picture import Cell, Panel, Picture
from colearn.text.printable import escape

SIDE = 24
"""Side length of a cell in SVG units, and also in pixels if the panel is small."""
_SMALL = 4
"""Maximum number of columns or rows of a small panel; larger ones have _DENSE cells."""
_DENSE = 16
_KINDS = ("#4c9f70", "#c2703d", "#5b7fbf", "#b65f8f", "#a39b3b", "#5fa8ad", "#8a6fb0", "#9a9a9a")
"""Colours for kinds to which the task assigns none."""
_AGENTS = ("#1f6fd0", "#c2185b", "#0f6b3a", "#6b2fa0", "#8a5200", "#00616b")
"""Colours of the discs with the agents' numbers; dark enough for white digits."""
_NUMBERS = "123456789abcdefghijklmnopqrstuvwxyz"
_MARKS = {
    "missing": "missing",
    "extra": "extra: belongs empty",
    "wrong": "another kind belongs here",
}

At = tuple[int, int]


class Drawing:
    """Draws pictures with colours of kinds and agents that are consistent over a page."""

    def __init__(self, pictures: Iterable[Picture], agents: Sequence[str]) -> None:
        panels = [(picture, panel) for picture in pictures for panel in picture.panels]
        cells = [cell for _, panel in panels for cell in panel.cells.values()]
        colours: dict[str, str] = {}
        for picture, _ in panels:
            colours |= picture.colours
        kinds = dict.fromkeys(cell.kind for cell in cells if cell.kind)
        uncoloured = [kind for kind in kinds if kind not in colours]
        spare = {kind: _KINDS[number % len(_KINDS)] for number, kind in enumerate(uncoloured)}
        self._kinds = {kind: colours.get(kind) or spare[kind] for kind in kinds}
        owners = {cell.owner for cell in cells if cell.owner}
        self._owners = [agent for agent in agents if agent in owners]
        self._owners += sorted(owners.difference(agents))
        self._marks = [mark for mark in _MARKS if any(cell.mark == mark for cell in cells)]

    def legend(self, *, changes: bool) -> str:
        """Return a legend of colours and marks. changes: whether the legend also explains the mark
        of changed cells."""
        corner = [(0, 0)]
        entries = [
            (f'<path d="{_squares(corner)}" class="block" fill="{colour}"/>', kind)
            for kind, colour in self._kinds.items()
        ]
        entries += [(self._discs(corner, owner), owner) for owner in self._owners]
        entries += [(_mark(mark, corner), _MARKS[mark]) for mark in self._marks]
        entries += [(_corners(corner), "changed since the turn before")] * changes
        keys = "".join(
            f'<span><svg viewBox="0 0 {SIDE} {SIDE}" width="16" height="16">{inside}</svg>'
            f"{escape(text)}</span>"
            for inside, text in entries
        )
        return f'<p class="legend">{keys}</p>'

    def draw(self, picture: Picture, earlier: Picture | None) -> str:
        """Returns a picture as an HTML figure; cells that differ from the picture of the `earlier`
        turn are marked."""
        groups = []
        for number, group in enumerate(picture.groups):
            known = earlier.groups[number] if earlier and number < len(earlier.groups) else None
            panels = "".join(
                self._panel(panel, None if known is None else _same_panel(panel, place, known))
                for place, panel in enumerate(group)
            )
            groups.append(f'<div class="group">{panels}</div>')
        caption = f"<figcaption>{escape(picture.caption)}</figcaption>" if picture.caption else ""
        return f'<figure class="world"><div>{"".join(groups)}</div>{caption}</figure>'

    def _panel(self, panel: Panel, earlier: Panel | None) -> str:
        side = SIDE if max(panel.columns, panel.rows) <= _SMALL else _DENSE
        standing = {at: cell for at, cell in panel.cells.items() if cell.mark != "missing"}
        parts = [_grid(panel)]
        for kind in dict.fromkeys(cell.kind for cell in panel.cells.values()):
            fill = f'class="block" fill="{self._kinds[kind]}"' if kind else 'class="plain"'
            cells = [at for at, cell in standing.items() if cell.kind == kind]
            absent = [
                at for at, cell in panel.cells.items() if cell.kind == kind and at not in standing
            ]
            if cells:
                parts.append(f'<path d="{_squares(cells)}" {fill}/>')
            if absent and kind:
                parts.append(f'<path d="{_squares(absent)}" {fill} opacity=".28"/>')
        parts += [
            _mark(mark, [at for at, cell in panel.cells.items() if cell.mark == mark])
            for mark in self._marks
        ]
        if earlier is not None:
            parts.append(_corners(changed(panel, earlier)))
        parts += [
            self._discs([at for at, cell in standing.items() if cell.owner == owner], owner)
            for owner in self._owners
        ]
        return (
            f'<div class="panel"><small>{escape(panel.title)}</small>'
            f'<svg viewBox="0 0 {panel.columns * SIDE} {panel.rows * SIDE}" '
            f'width="{panel.columns * side}" height="{panel.rows * side}" role="img" '
            f'aria-label="{escape(_description(panel))}">{"".join(parts)}</svg></div>'
        )

    def _discs(self, cells: Sequence[At], owner: str) -> str:
        """Draws each disc as a zero-length line with round ends, and a digit over the disc."""
        if not cells:
            return ""
        number = self._owners.index(owner)
        points = "".join(f"M{_middle(x)} {_middle(y)}h0" for x, y in cells)
        across = " ".join(str(_middle(x)) for x, _ in cells)
        down = " ".join(str(_middle(y) + 4) for _, y in cells)
        digits = _NUMBERS[number % len(_NUMBERS)] * len(cells)
        return (
            f'<path d="{points}" class="disc" stroke="{_AGENTS[number % len(_AGENTS)]}"/>'
            f'<text x="{across}" y="{down}">{digits}</text>'
        )


def changed(panel: Panel, earlier: Panel) -> list[At]:
    """Cells that differ from the `earlier` panel."""

    def standing(cell: Cell | None) -> tuple[str, str] | None:
        return None if cell is None or cell.mark == "missing" else (cell.kind, cell.owner)

    cells = sorted({*panel.cells, *earlier.cells}, key=lambda at: (at[1], at[0]))
    return [at for at in cells if standing(panel.cells.get(at)) != standing(earlier.cells.get(at))]


def _same_panel(panel: Panel, place: int, known: Sequence[Panel]) -> Panel | None:
    """Returns the panel at position `place` of `known` if its grid has the same size, or None."""
    if place < len(known) and (known[place].columns, known[place].rows) == (
        panel.columns,
        panel.rows,
    ):
        return known[place]
    return None


def _description(panel: Panel) -> str:
    """Description of the panel for screen readers."""
    marks = [cell.mark for cell in panel.cells.values()]
    counts = (f"{marks.count(mark)} {mark}" for mark in _MARKS if mark in marks)
    standing = len(marks) - marks.count("missing")
    return ", ".join([f"{panel.title}: {standing} cells filled", *counts])


def _grid(panel: Panel) -> str:
    width, height = panel.columns * SIDE, panel.rows * SIDE
    down = "".join(f"M{x * SIDE} 0v{height}" for x in range(panel.columns + 1))
    across = "".join(f"M0 {y * SIDE}h{width}" for y in range(panel.rows + 1))
    return f'<path class="grid" d="{down}{across}"/>'


def _squares(cells: Collection[At]) -> str:
    inner = SIDE - 2
    return "".join(f"M{x * SIDE + 1} {y * SIDE + 1}h{inner}v{inner}h-{inner}z" for x, y in cells)


def _mark(mark: str, cells: Collection[At]) -> str:
    """Draws a dashed frame on missing cells, a cross on extra cells, a stroke on wrong cells."""
    if not cells:
        return ""
    inner = SIDE - 4
    frames = "".join(f"M{x * SIDE + 2} {y * SIDE + 2}h{inner}v{inner}h-{inner}z" for x, y in cells)
    strokes = {
        "missing": "",
        "extra": f"m0 0l{inner} {inner}m0 -{inner}l-{inner} {inner}",
        "wrong": f"m0 {inner}l{inner} -{inner}",
    }[mark]
    lines = "".join(f"M{x * SIDE + 2} {y * SIDE + 2}{strokes}" for x, y in cells) if strokes else ""
    return f'<path class="{mark}" d="{frames}{lines}"/>'


def _corners(cells: Collection[At]) -> str:
    if not cells:
        return ""
    points = "".join(f"M{x * SIDE + 1} {y * SIDE + 1}h8l-8 8z" for x, y in cells)
    return f'<path class="new" d="{points}"/>'


def _middle(place: int) -> int:
    return place * SIDE + SIDE // 2
