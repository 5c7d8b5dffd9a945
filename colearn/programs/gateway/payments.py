"""Converts a program's rewards, which the program posts while it runs or returns at its end."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from colearn import registry
from colearn.contract.types import Sources
from colearn.errors import TaskError
from colearn.programs.workflow.record import Payment
from colearn.text.json_value import copied
from colearn.text.real_number import real_number

from .program_run import Paid
from .state import GatewayCall, GatewayState

TEAM = "team"
LARGEST = 1e9
"""Maximum absolute value of a reward."""


class NoReward(ValueError):
    """Raised when a program's reward is not a valid number, or the reward's key is not an agent's
    name."""


def payment(state: GatewayState[Any], paid: Paid) -> Payment:
    """Converts a posted reward to a payment. The payment names the actions that earned the
    reward."""
    if paid.agent is None and paid.request is None:
        return Payment(value=paid.value)
    actions = tuple(
        (event.turn, event.call.name)
        for event in state.events
        if event.turn is not None and isinstance(event.call, GatewayCall)
        if paid.request == event.call.request or paid.agent == event.call.name
    )
    return Payment(value=paid.value, actions=actions)


def read_result(result: Any, state: GatewayState[Any], agents: Collection[str]) -> list[Payment]:
    """Converts a program's result to payments.

    A number is the team's reward; a mapping has `team` and agents as keys; None pays nothing. The
    reward of an agent that gave no answer is dropped.

    Errors: NoReward with the reason. Exceptions that a returned object raises while it is read are
    not caught.
    """
    if result is None:
        return []
    if not isinstance(result, Mapping):
        return [Payment(value=number(result, "the result"))]
    payments = []
    answered = {event.call.name for event in state.events}
    for name, value in result.items():
        if name == TEAM:
            payments.append(Payment(value=number(value, TEAM)))
        elif name in answered:
            actions: Sources = tuple(
                (event.turn, name)
                for event in state.events
                if event.turn is not None and event.call.name == name
            )
            payments.append(Payment(value=number(value, name), actions=actions))
        elif not isinstance(name, str):
            raise NoReward(f"a key is a {type(name).__name__}, must be the name of an agent")
        elif name not in agents:
            raise NoReward(f"a key is no agent's name; known: {', '.join((TEAM, *agents))}")
        else:
            number(value, name)
    return payments


def graded(
    grade: str | None, result: Any, state: GatewayState[Any], agents: Collection[str]
) -> list[Payment]:
    """Returns the payments for a program's result or, if `grade` names a function, for the value
    that this function returns for the result.

    Errors: NoReward for a result that is not a reward; TaskError for a grade that is not a reward.
    Exceptions that are raised while the result is read or graded are not caught.
    """
    if grade is None:
        return read_result(result, state, agents)
    value = registry.own_function(grade, "task.grade")(copied(state.item), result)
    try:
        return read_result(value, state, agents)
    except NoReward as error:
        raise TaskError(f"task.grade: {error}") from None


def number(value: Any, subject: str) -> float:
    """Returns `value` as a float.

    Truth values and what `real_number` reads are numbers.

    Errors: NoReward unless it is a number with an absolute value of at most `LARGEST`. Exceptions
    that a foreign number raises are not caught.
    """
    if not isinstance(value, (int, float)):
        try:
            value = real_number(value)
        except TypeError:
            raise NoReward(f"{subject} is a {type(value).__name__}, must be a number") from None
    if not -LARGEST <= value <= LARGEST:  # also NaN, and integers that are too large for a float
        raise NoReward(f"{subject} must be finite, and at most {LARGEST:g} in magnitude")
    return float(value)
