"""Optional post-processing of advantages: clipping and normalisation, both off by default."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan

from colearn.contract import NodeAdvantages

EPSILON = 1e-6
"""Constant that is added to a standard deviation before a division by the deviation."""


def scored(advantages: Sequence[NodeAdvantages]) -> list[NodeAdvantages]:
    """Keep only the advantages of scored actions; NaN marks an action that is not scored."""
    return [
        tuple({name: a for name, a in node.items() if not isnan(a)} for node in tree)
        for tree in advantages
    ]


def bootstrapped(value: float, later: float, lam: float) -> float:
    """Return (1 - lambda) V + lambda * (later return). The later return may be NaN if lambda is
    0."""
    return value if lam == 0.0 else (1.0 - lam) * value + lam * later


def clipped(advantages: Sequence[NodeAdvantages], clip: float | None) -> list[NodeAdvantages]:
    """Clip every advantage to [-clip, clip]; with None, return the advantages unchanged."""
    if clip is None:
        return list(advantages)
    return [
        tuple({name: max(-clip, min(clip, a)) for name, a in node.items()} for node in tree)
        for tree in advantages
    ]


def normalized(advantages: Sequence[NodeAdvantages]) -> list[NodeAdvantages]:
    """Normalise to zero mean and unit deviation over all actions of each agent.

    If an agent has only one action, its advantage is left unchanged: a single number has no
    deviation, and subtracting the mean would leave 0.
    """
    by_agent: dict[str, list[float]] = {}
    for tree in advantages:
        for node in tree:
            for agent, advantage in node.items():
                by_agent.setdefault(agent, []).append(advantage)
    shift, scale = {}, {}
    for agent, of_agent in by_agent.items():
        alone = len(of_agent) == 1
        shift[agent] = 0.0 if alone else sum(of_agent) / len(of_agent)
        scale[agent] = 1.0 if alone else deviation(of_agent) + EPSILON
    return [
        tuple({name: (a - shift[name]) / scale[name] for name, a in node.items()} for node in tree)
        for tree in advantages
    ]


def deviation(numbers: Sequence[float]) -> float:
    """Population standard deviation."""
    mean = sum(numbers) / len(numbers)
    variance: float = sum((number - mean) ** 2 for number in numbers) / len(numbers)
    return variance**0.5
