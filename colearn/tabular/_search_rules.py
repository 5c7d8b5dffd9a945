"""The joint decision rules of one turn, best first: a Bayesian game searched by branch and bound.

A game is an array over (cell of every agent, action of every agent). Agents decide one after the
other, and one cell after the other; what is still open counts as decided by somebody who sees every
cell, which bounds the rest from above.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from .model import Array

Rules = tuple[NDArray[np.int64], ...]
"""By agent: its action in each of its cells."""

CHUNK = 2**20
"""Numbers held for the partial rules that are extended at once."""


def joint_rules(
    game: Array, worth: Callable[[], float], count: Callable[[int], None]
) -> Iterator[tuple[float, Rules]]:
    """Joint rules whose value exceeds `worth()`, which may grow meanwhile; (value, rules).

    game: [cells of agent 1, .., cells of agent n, actions of agent 1, .., actions of agent n]. The
    order is by falling value within a chunk of partial rules, the most promising chunk first.
    `count` is told how many partial rules are extended, and may raise to stop.
    """
    yield from _decide(game[None], (), worth, count, last_by_response=False)


def best_rules(
    game: Array, worth: float, count: Callable[[int], None]
) -> tuple[float, Rules] | None:
    """The joint rules of highest value, where that exceeds `worth`."""
    found: list[tuple[float, Rules]] = []
    rising = _decide(
        game[None], (), lambda: found[-1][0] if found else worth, count, last_by_response=True
    )
    for better in rising:
        found.append(better)
    return found[-1] if found else None


def _decide(
    games: Array,
    before: Rules,
    worth: Callable[[], float],
    count: Callable[[int], None],
    *,
    last_by_response: bool,
) -> Iterator[tuple[float, Rules]]:
    """Decide for the first agent of `games` [games, cells.., actions..], then for the others.

    `before` has for every game the rules [games, cells] that led to it.
    """
    agents = games.ndim // 2
    if agents == 1 and last_by_response:
        values = games.max(axis=2).sum(axis=1)
        top = int(values.argmax())
        if values[top] > worth():
            yield float(values[top]), (*(rule[top] for rule in before), games[top].argmax(axis=1))
        return
    # cell first, its action next: [games, cell, action, others' cells.., others' actions..]
    mine = np.moveaxis(games, agents + 1, 2)
    order = np.argsort(-np.ptp(mine, axis=2).reshape(*mine.shape[:2], -1).sum(axis=(0, 2)))
    mine = mine[:, order]
    cells, actions = mine.shape[1:3]
    openly = np.zeros((len(mine), cells + 1, *mine.shape[3:]))
    openly[:, :cells] = np.cumsum(mine.max(axis=2)[:, ::-1], axis=1)[:, ::-1]

    stack = [(np.arange(len(mine)), np.zeros((len(mine), 0), np.int64), openly[:, 0] * 0.0)]
    while stack:
        origin, rule, decided = stack.pop()
        depth = rule.shape[1]
        bound = _shared(decided + openly[origin, depth])
        kept = np.argsort(-bound, kind="stable")
        kept = kept[bound[kept] > worth()]
        if not len(kept):
            continue
        origin, rule, decided = origin[kept], rule[kept], decided[kept]
        if depth < cells:
            count(len(rule))
            origin = np.repeat(origin, actions)
            choice = np.tile(np.arange(actions), len(rule))
            rule = np.column_stack((np.repeat(rule, actions, axis=0), choice))
            decided = np.repeat(decided, actions, axis=0) + mine[origin, depth, choice]
            _push(stack, origin, rule, decided, _shared(decided + openly[origin, depth + 1]))
            continue
        complete = np.empty_like(rule)
        complete[:, order] = rule
        rules = (*(earlier[origin] for earlier in before), complete)
        if agents > 1:
            yield from _decide(decided, rules, worth, count, last_by_response=last_by_response)
            continue
        for number, value in enumerate(decided.tolist()):
            if value > worth():
                yield value, tuple(one[number] for one in rules)


_Partial = tuple[NDArray[np.int64], NDArray[np.int64], Array]


def _push(
    stack: list[_Partial],
    origin: NDArray[np.int64],
    rule: NDArray[np.int64],
    decided: Array,
    bound: Array,
) -> None:
    """Push in chunks, the one of the highest bounds last, so that it is popped first."""
    size = max(1, CHUNK // (rule.shape[1] + decided[0].size))
    order = np.argsort(-bound, kind="stable")
    for first in reversed(range(0, len(order), size)):
        part = order[first : first + size]
        stack.append((origin[part], rule[part], decided[part]))


def _shared(games: Array) -> Array:
    """The value of each game [games, cells.., actions..] to agents who see each other's cells."""
    agents = games.ndim // 2
    best = games.max(axis=tuple(range(agents + 1, games.ndim)))
    return best.reshape(len(games), -1).sum(axis=1)
