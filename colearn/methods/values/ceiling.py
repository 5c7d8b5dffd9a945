"""Estimates the fraction of the returns' variance that a value model can explain, and the fraction
that a separate mean for each item explains."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isnan

import numpy as np

from colearn.contract import Episodes

from .explained_variance import Pair, TurnWorth, worth_by_turn

PRIOR = 2.0
"""Number of pseudo-returns, equal to the turn's mean, that are added to an item's own returns."""
_RESAMPLES = 200


@dataclass(frozen=True, slots=True)
class Ceiling:
    """Upper bound, at one turn, on the explained variance of a value that depends on the joint
    history only. Includes a 95% interval over trees."""

    turn: int
    explainable: float
    low: float
    high: float
    groups: int
    """Number of joint histories after which several joint actions were sampled."""


def ceilings(episodes: Episodes) -> tuple[Ceiling, ...]:
    """Compute the explainable fraction of the variance at each turn: 1 - (variance among siblings)
    / (total variance).

    Returns are means over agents. Turns without siblings are left out.
    """
    by_turn = (
        _ceiling(turn, list(trees.values()))
        for turn, trees in sorted(return_groups(episodes, None).items())
    )
    return tuple(ceiling for ceiling in by_turn if ceiling is not None)


def return_groups(
    episodes: Episodes, items: Sequence[str] | None
) -> dict[int, dict[str, list[list[float]]]]:
    """Group the returns that follow equal joint histories, by turn and by tree or item. `items`:
    the name of every episode's item. If names are given, the roots of all trees of an item count as
    one history, which is correct only if one policy played all episodes."""
    by_turn: dict[int, dict[str, list[list[float]]]] = {}
    for number, episode in enumerate(episodes):
        agents = [episode.returns_of(agent) for agent in episode.agents]
        returns = np.mean(agents, axis=0)
        for node, below in zip(episode.nodes, episode.below(), strict=True):
            group = [float(returns[edge]) for edge in below if not isnan(returns[edge])]
            if not group:
                continue
            root = items is not None and node.parent is None
            key = f"item {items[number]}" if items is not None and root else f"episode {number}"
            groups = by_turn.setdefault(node.turn, {}).setdefault(key, [])
            if root and groups:
                groups[0] += group
            else:
                groups.append(group)
    return by_turn


def _ceiling(turn: int, trees: Sequence[Sequence[Sequence[float]]]) -> Ceiling | None:
    """Compute the ceiling at one turn. `trees` contains the groups of each tree, which are
    resampled together."""
    sums = np.array([_sums(groups) for groups in trees])
    share = _explainable(sums.sum(0))
    if share is None:
        return None
    rng = np.random.default_rng(0)
    draws = (rng.integers(len(sums), size=len(sums)) for _ in range(_RESAMPLES))
    resamples = [
        resampled
        for chosen in draws
        if (resampled := _explainable(sums[chosen].sum(0))) is not None
    ]
    low, high = np.quantile(resamples or [share], [0.025, 0.975])
    group_count = sum(len(group) > 1 for groups in trees for group in groups)
    return Ceiling(turn, share, float(low), float(high), group_count)


def _sums(groups: Sequence[Sequence[float]]) -> tuple[float, float, float, float, float]:
    """Return five numbers: the number of returns, the sum of the returns, the sum of their squares,
    the sum of squared deviations within groups, and the degrees of freedom of the last sum."""
    flat = [value for group in groups for value in group]
    within = sum(float(np.var(group)) * len(group) for group in groups)
    freedom = sum(len(group) - 1 for group in groups)
    return len(flat), sum(flat), sum(value * value for value in flat), within, freedom


def _explainable(sums: np.ndarray) -> float | None:
    number, total, squares, within, freedom = sums
    if freedom < 1 or number < 2:
        return None
    variance = (squares - total**2 / number) / (number - 1)
    return None if variance <= 0 else float(1 - within / freedom / variance)


def item_mean_worth(before: Sequence[Pair], judged: Sequence[Pair]) -> tuple[TurnWorth, ...]:
    """Return the explained variance of item means. An item mean predicts each return by the mean of
    earlier returns of the same item and turn, shrunk towards the mean of the turn."""
    return worth_by_turn(item_mean_pairs(before, judged))


def item_mean_pairs(before: Sequence[Pair], judged: Sequence[Pair]) -> Iterator[Pair]:
    """Return the pairs in `judged` with each value replaced by the (shrunk) mean of returns in
    `before` of the same item and turn."""
    of_turn: dict[int, list[float]] = {}
    of_item: dict[tuple[str, int], list[float]] = {}
    for pair in before:
        of_turn.setdefault(pair.turn, []).append(pair.actual)
        of_item.setdefault((pair.item, pair.turn), []).append(pair.actual)
    means = {turn: float(np.mean(returns)) for turn, returns in of_turn.items()}
    for pair in judged:
        usual = means.get(pair.turn, 0.0)
        item_returns = of_item.get((pair.item, pair.turn), [])
        mean = (sum(item_returns) + PRIOR * usual) / (len(item_returns) + PRIOR)
        yield pair._replace(value=mean)
