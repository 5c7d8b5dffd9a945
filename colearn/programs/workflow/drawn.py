"""Renders a run's executed graph: as lanes for the report, or as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from colearn.contract.picture import Cell, Panel, Picture

from .record import Call, WorkflowState
from .tool import plain

_LONGEST = 400
"""Maximum number of characters of a prompt or result in a rendering."""


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
    """Writes a line per answered call: number, turn, name, a tool's arguments, sources, the reward
    that its action has earned, result."""
    lines = []
    for event in state.events:
        turn = "tool" if event.turn is None else f"t={event.turn}"
        after = ",".join(map(str, event.call.after))
        arguments = f"({_line(event.call.text)})" if event.call.tool else ""
        earned = "" if event.turn is None else _paid(state, (event.turn, event.call.name))
        lines.append(
            f"{event.call.number} {turn} {event.call.name}{arguments} <- [{after}]{earned}: "
            f"{_line(_short(event.result))}"
        )
    return "\n".join(lines)


def _line(text: str) -> str:
    return " ".join(text[:_LONGEST].split())


def _calls(state: WorkflowState[Any]) -> list[Call]:
    return [*(event.call for event in state.events), *state.waiting]


def _paid(state: WorkflowState[Any], action: tuple[int, str]) -> str:
    rewards = [paid.value for paid in state.payments if paid.actions and action in paid.actions]
    return f", earned {sum(rewards):+.2f}" if rewards else ""


def _short(result: Any) -> str:
    return plain(result)[:_LONGEST]
