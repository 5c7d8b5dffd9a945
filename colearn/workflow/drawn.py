"""The executed graph of a run: as SVG with its edges, as a picture for the report, as text."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from colearn.pictures import Cell, Panel, Picture
from colearn.text import printable

from .record import Call, WorkflowState
from .tool import plain

_WIDE, _HIGH, _GAP_X, _GAP_Y, _EDGE = 132, 44, 56, 26, 16
_STYLE = (
    "text{font:12px sans-serif;fill:#222}.small{font-size:10px;fill:#555}"
    "rect{fill:#eef3fb;stroke:#1f6fd0}.tool{fill:#f6f1e4;stroke:#8a5200;stroke-dasharray:4 3}"
    ".open{fill:#fff}path{fill:none;stroke:#777;marker-end:url(#tip)}"
)
_LONGEST = 400
"""Characters of a prompt or a result that a reader is shown."""


def svg(state: WorkflowState[Any]) -> str:
    """One box per call, left to right as calls came from each other; dashed boxes are tools, empty
    ones wait. A box names turn and reward; its title holds what was asked and said."""
    calls = sorted(_calls(state), key=lambda call: call.number)
    column: dict[int, int] = {}
    for call in calls:
        column[call.number] = 1 + max((column[n] for n in call.after), default=-1)
    row: dict[int, int] = {}
    filled: dict[int, int] = {}
    for call in calls:
        least = min((row[n] for n in call.after), default=0)
        row[call.number] = max(filled.get(column[call.number], 0), least)
        filled[column[call.number]] = row[call.number] + 1
    place = {
        number: (_EDGE + column[number] * (_WIDE + _GAP_X), _EDGE + row[number] * (_HIGH + _GAP_Y))
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
    """A lane for each role and tool, a column for each call, a role's cell owned by the role."""
    calls = _calls(state)
    cells = {
        (column, lanes.index(call.name)): Cell(
            kind=call.name, owner="" if call.tool else call.name, mark=""
        )
        for column, call in enumerate(calls)
    }
    panel = Panel("calls", max(1, len(calls)), len(lanes), cells)
    said = " ".join(
        f"{event.call.name}{'' if event.turn is None else f'@{event.turn}'}"
        for event in state.events
    )
    return Picture(groups=((panel,),), caption=said)


def text(state: WorkflowState[Any]) -> str:
    """A line for each call that was answered: turn, name, sources, what came of it."""
    lines = []
    for event in state.events:
        turn = "tool" if event.turn is None else f"t={event.turn}"
        after = ",".join(map(str, event.call.after))
        lines.append(
            f"{event.call.number} {turn} {event.call.name} <- [{after}]: "
            f"{' '.join(_short(event.result).split())}"
        )
    return "\n".join(lines)


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
    below, told = "waits", call.text
    if event is not None:
        told = f"{call.text}\n\n{_short(event.result)}"
        below = "tool"
        if event.turn is not None:
            below = f"turn {event.turn}" + _paid(state, (event.turn, call.name))
    x, y = at
    return (
        f"<g><title>{escape(printable(told[: 2 * _LONGEST]))}</title>"
        f'<rect class="{kind}" x="{x}" y="{y}" width="{_WIDE}" height="{_HIGH}" rx="6"/>'
        f'<text x="{x + 10}" y="{y + 18}">{escape(call.name)}</text>'
        f'<text class="small" x="{x + 10}" y="{y + 34}">{escape(below)}</text></g>'
    )


def _paid(state: WorkflowState[Any], action: tuple[int, str]) -> str:
    own = [paid.value for paid in state.payments if paid.actions and action in paid.actions]
    return f", earned {sum(own):+.2f}" if own else ""


def _short(result: Any) -> str:
    return plain(result)[:_LONGEST]
