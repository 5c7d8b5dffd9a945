"""The terms of the rewards for math (Stronger-MAS, B.1). Each is a function of the answers."""

from __future__ import annotations

from ..local_reward import local_reward, weights
from .checker import equal

REASONER = weights(format=0.20, tool=0.00, step=0.80)
TOOL = weights(format=0.10, tool=0.10, step=0.80)
"""Weights of the tool user, which the paper does not print. As in the paper's games, a block of
code earns 0.1, and a program that runs without an error earns another 0.1."""


def team(final: float | None, truth: float) -> float:
    """r_team: 1 if the current final answer is right."""
    return step_score(final, truth)


def format_score(matched: bool) -> float:
    """s_fmt: 1 if the answer has the requested format."""
    return float(matched)


def tool_score(ran: bool) -> float:
    """s_tool: 1 if the program ended without an error."""
    return float(ran)


def step_score(value: float | None, truth: float) -> float:
    """s_step: 1 if the number in the answer equals the truth by NumEq; 0 if it differs or is
    missing."""
    return float(value is not None and equal(value, truth))


def reasoner_reward(matched: bool, value: float | None, truth: float) -> float:
    """r_loc of a reasoner or a judge; m = 1, since the truth is always known."""
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
