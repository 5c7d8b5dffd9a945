"""Renders a run's executed graph: as an SVG with edges, as lanes for the report, or as text."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from colearn.contract.picture import Cell, Panel, Picture
from colearn.text.printable import printable

from .record import Call, WorkflowState
from .tool import plain

_WIDE, _HIGH, _GAP_X, _GAP_Y, _EDGE = 132, 44, 56, 26, 16
_STYLE = (
    "text{font:12px sans-serif;fill:#222}.small{font-size:10px;fill:#555}"
    "rect{fill:#eef3fb;stroke:#1f6fd0}.tool{fill:#f6f1e4;stroke:#8a5200;stroke-dasharray:4 3}"
    ".open{fill:#fff}path{fill:none;stroke:#777;marker-end:url(#tip)}"
)
_BAND = 3
"""Number of columns side by side; further columns start a new band below, so that a long run stays
legible."""
_LONGEST = 400
"""Maximum number of characters of a prompt or result in a rendering."""


def svg(state: WorkflowState[Any]) -> str | None:
    """Draws one box per call, to the right of the boxes of the call's sources, in bands of `_BAND`
    columns. Returns None before the first call.

    Dashed boxes are tools; white boxes are unanswered calls. A box shows the turn and the reward;
    the box's title contains the prompt and the answer.
    """
    calls = sorted(_calls(state), key=lambda call: call.number)
    if not calls:
        return None
    column: dict[int, int] = {}
    for call in calls:
        column[call.number] = 1 + max((column[n] for n in call.after), default=-1)
    row: dict[int, int] = {}
    filled: dict[int, int] = {}
    rows = [0] * (1 + max(column.values()) // _BAND)
    """Number of rows in each band."""
    for call in calls:
        least = min((row[n] for n in call.after), default=0)
        row[call.number] = max(filled.get(column[call.number], 0), least)
        filled[column[call.number]] = row[call.number] + 1
        band = column[call.number] // _BAND
        rows[band] = max(rows[band], row[call.number] + 1)
    place = {
        number: (
            _EDGE + column[number] % _BAND * (_WIDE + _GAP_X),
            _EDGE + (sum(rows[: column[number] // _BAND]) + row[number]) * (_HIGH + _GAP_Y),
        )
        for number in column
    }
    width = max(x for x, _ in place.values()) + _WIDE + _EDGE
    height = max(y for _, y in place.values()) + _HIGH + _EDGE
    edges = "".join(
        _edge(place[source], place[call.number]) for call in calls for source in call.after
    )
    boxes = "".join(_box(state, call, place[call.number]) for call in calls)
    tip = (
        '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0 0L8 4L0 8z" style="fill:#777;stroke:none;marker-end:none"/>'
        "</marker>"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img"><style>{_STYLE}</style><defs>{tip}</defs>'
        f"{edges}{boxes}</svg>"
    )


def picture(state: WorkflowState[Any], lanes: Sequence[str]) -> Picture:
    """Draws a lane per role and tool, and a column per call."""
    calls = _calls(state)
    cells = {
        (column, lanes.index(call.name)): Cell(
            kind=call.name, owner="" if call.tool else call.name, mark=""
        )
        for column, call in enumerate(calls)
    }
    panel = Panel(
        f"calls by {', '.join(lanes)}, from the top", max(1, len(calls)), len(lanes), cells
    )
    caption = " ".join(
        f"{event.call.name}{'' if event.turn is None else f'@{event.turn}'}"
        for event in state.events
    )
    return Picture(groups=((panel,),), caption=caption)


def text(state: WorkflowState[Any]) -> str:
    """Writes a line per answered call: turn, name, a tool's arguments, sources, result."""
    lines = []
    for event in state.events:
        turn = "tool" if event.turn is None else f"t={event.turn}"
        after = ",".join(map(str, event.call.after))
        arguments = f"({_line(event.call.text)})" if event.call.tool else ""
        lines.append(
            f"{event.call.number} {turn} {event.call.name}{arguments} <- [{after}]: "
            f"{_line(_short(event.result))}"
        )
    return "\n".join(lines)


def _line(text: str) -> str:
    return " ".join(text[:_LONGEST].split())


def _calls(state: WorkflowState[Any]) -> list[Call]:
    return [*(event.call for event in state.events), *state.waiting]


def _edge(source: tuple[int, int], target: tuple[int, int]) -> str:
    x, y = source[0] + _WIDE, source[1] + _HIGH // 2
    to_x, to_y = target[0], target[1] + _HIGH // 2
    half = (x + to_x) // 2
    return f'<path d="M{x} {y}C{half} {y} {half} {to_y} {to_x} {to_y}"/>'


def _box(state: WorkflowState[Any], call: Call, at: tuple[int, int]) -> str:
    event = next((event for event in state.events if event.call == call), None)
    kind = "tool" if call.tool else "role" if event else "open"
    below, title = "waits", call.text
    if event is not None:
        title = f"{call.text}\n\n{_short(event.result)}"
        below = "tool"
        if event.turn is not None:
            below = f"turn {event.turn}" + _paid(state, (event.turn, call.name))
    x, y = at
    return (
        f"<g><title>{escape(printable(title[: 2 * _LONGEST]))}</title>"
        f'<rect class="{kind}" x="{x}" y="{y}" width="{_WIDE}" height="{_HIGH}" rx="6"/>'
        f'<text x="{x + 10}" y="{y + 18}">{escape(call.name)}</text>'
        f'<text class="small" x="{x + 10}" y="{y + 34}">{escape(below)}</text></g>'
    )


def _paid(state: WorkflowState[Any], action: tuple[int, str]) -> str:
    rewards = [paid.value for paid in state.payments if paid.actions and action in paid.actions]
    return f", earned {sum(rewards):+.2f}" if rewards else ""


def _short(result: Any) -> str:
    return plain(result)[:_LONGEST]
