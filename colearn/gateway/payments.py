"""Rewards of a program: posted while it runs, and what it returns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from colearn.types import Sources
from colearn.workflow.record import Payment

from .live import Paid
from .state import GatewayCall, GatewayState

TEAM = "team"
LARGEST = 1e9
"""Either way."""


def payment(state: GatewayState[Any], paid: Paid) -> Payment:
    """A posted reward, to those who earned it."""
    if paid.agent is None and paid.request is None:
        return Payment(value=paid.value)
    said = tuple(
        (event.turn, event.call.name)
        for event in state.events
        if event.turn is not None and isinstance(event.call, GatewayCall)
        if paid.request == event.call.request or paid.agent == event.call.name
    )
    return Payment(value=paid.value, actions=said)


def read_result(result: Any, state: GatewayState[Any]) -> list[Payment]:
    """A number is the team's; a mapping names the team and agents. Nothing pays nothing, and so
    does what an agent that has said nothing would get.

    Errors: ValueError that says what is wrong.
    """
    if result is None:
        return []
    if not isinstance(result, Mapping):
        return [Payment(value=number(result, "the result"))]
    found = []
    agents = {event.call.name for event in state.events}
    for name, value in result.items():
        if name == TEAM:
            found.append(Payment(value=number(value, TEAM)))
        elif name in agents:
            said: Sources = tuple(
                (event.turn, name)
                for event in state.events
                if event.turn is not None and event.call.name == name
            )
            found.append(Payment(value=number(value, name), actions=said))
        elif not isinstance(name, str):
            raise ValueError(f"{name!r} names no agent")
        else:
            number(value, name)
    return found


def number(value: Any, what: str) -> float:
    """Errors: ValueError unless it is a finite number of a size that can be squared and summed."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"{what} is a {type(value).__name__}, must be a number")
    if not math.isfinite(value) or abs(value) > LARGEST:
        raise ValueError(f"{what} must be finite, and at most {LARGEST:g} either way")
    return float(value)
