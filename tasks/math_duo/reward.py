"""The terms of the rewards for math (Stronger-MAS, B.1), each a function of the answers."""

from __future__ import annotations

from ..local_reward import local_reward, weights
from .checker import equal

REASONER = weights(format=0.20, tool=0.00, step=0.80)
TOOL = weights(format=0.10, tool=0.10, step=0.80)
"""The paper prints no weights for the tool user. As in its games, a block of code earns a tenth and
a program that runs another tenth."""


def team(final: float | None, truth: float) -> float:
    """r_team: 1 if the final answer so far is right."""
    return step_score(final, truth)


def format_score(matched: bool) -> float:
    """s_fmt: the answer has the form that was asked for."""
    return float(matched)


def tool_score(ran: bool) -> float:
    """s_tool: the program ended without an error."""
    return float(ran)


def step_score(value: float | None, truth: float) -> float:
    """s_step: NumEq of the number that was read, 0 if there is none."""
    return float(value is not None and equal(value, truth))


def reasoner_reward(matched: bool, value: float | None, truth: float) -> float:
    """r_loc of a reasoner, and of a judge; m = 1, since the truth is always known."""
    scores = {"format": format_score(matched), "tool": 0.0, "step": step_score(value, truth)}
    return local_reward(REASONER, scores, available=True)


def tool_reward(matched: bool, ran: bool, value: float | None, truth: float) -> float:
    """r_loc of a tool user; m = 1."""
    scores = {
        "format": format_score(matched),
        "tool": tool_score(ran),
        "step": step_score(value, truth),
    }
    return local_reward(TOOL, scores, available=True)
