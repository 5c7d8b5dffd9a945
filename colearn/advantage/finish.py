"""Optional post-processing of advantages: clipping and normalisation, both off by default."""

from __future__ import annotations

from collections.abc import Sequence

from colearn.contract import NodeAdvantages

EPSILON = 1e-6
"""Added to a standard deviation before dividing by it."""


def clipped(advantages: Sequence[NodeAdvantages], clip: float | None) -> list[NodeAdvantages]:
    """Each advantage kept within [-clip, clip]."""
    if clip is None:
        return list(advantages)
    return [
        tuple({name: max(-clip, min(clip, a)) for name, a in node.items()} for node in tree)
        for tree in advantages
    ]


def normalized(advantages: Sequence[NodeAdvantages]) -> list[NodeAdvantages]:
    """Zero mean and unit deviation over all actions of one agent; a lone action is left as it is.

    A lone action has no deviation, and without its mean nothing of it would remain.
    """
    by_agent: dict[str, list[float]] = {}
    for tree in advantages:
        for node in tree:
            for agent, advantage in node.items():
                by_agent.setdefault(agent, []).append(advantage)
    shift, scale = {}, {}
    for agent, found in by_agent.items():
        alone = len(found) == 1
        shift[agent] = 0.0 if alone else sum(found) / len(found)
        scale[agent] = 1.0 if alone else deviation(found) + EPSILON
    return [
        tuple({name: (a - shift[name]) / scale[name] for name, a in node.items()} for node in tree)
        for tree in advantages
    ]


def deviation(numbers: Sequence[float]) -> float:
    """Population standard deviation."""
    mean = sum(numbers) / len(numbers)
    variance: float = sum((number - mean) ** 2 for number in numbers) / len(numbers)
    return variance**0.5
