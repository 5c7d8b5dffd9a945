"""Best-first branch and bound over the joint decision rules of one turn, which is a Bayesian game.

A game is an array over (cell of every agent, action of every agent). Decisions are fixed agent by
agent, and cell by cell. The value of open decisions is bounded from above by the best decisions of
one agent that sees every cell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from .model import Array

Rules = tuple[NDArray[np.int64], ...]
"""Decision rules by agent: the action in each of the agent's cells."""

CHUNK = 2**20
"""Maximum number of array elements in a chunk of partial rules."""


def joint_rules(
    game: Array, threshold: Callable[[], float], count: Callable[[int], None]
) -> Iterator[tuple[float, Rules]]:
    """Yield (value, rules) of the joint rules whose value exceeds the growing `threshold()`.

    game: [cells of agent 1, .., cells of agent n, actions of agent 1, .., actions of agent n].
    Within a chunk of partial rules, values decrease; the most promising chunk comes first. `count`
    is called with the number of extended partial rules, and may raise an exception to stop the
    search.
    """
    yield from _decide(game[None], (), threshold, count, last_by_response=False)


def best_rules(
    game: Array, threshold: float, count: Callable[[int], None]
) -> tuple[float, Rules] | None:
    """The joint rules with the highest value; None if no value exceeds `threshold`."""
    improvements: list[tuple[float, Rules]] = []
    search = _decide(
        game[None],
        (),
        lambda: improvements[-1][0] if improvements else threshold,
        count,
        last_by_response=True,
    )
    for improvement in search:
        improvements.append(improvement)
    return improvements[-1] if improvements else None


def _decide(
    games: Array,
    before: Rules,
    threshold: Callable[[], float],
    count: Callable[[int], None],
    *,
    last_by_response: bool,
) -> Iterator[tuple[float, Rules]]:
    """Fix the first agent's rule in `games` [games, cells.., actions..], then the others' rules.

    `before` contains, for each earlier agent, the rules [games, cells] that led to each game.
    """
    agents = games.ndim // 2
    if agents == 1 and last_by_response:
        values = games.max(axis=2).sum(axis=1)
        top = int(values.argmax())
        if values[top] > threshold():
            yield float(values[top]), (*(rule[top] for rule in before), games[top].argmax(axis=1))
        return
    # cell first, its action next: [games, cell, action, others' cells.., others' actions..]
    by_cell = np.moveaxis(games, agents + 1, 2)
    order = np.argsort(-np.ptp(by_cell, axis=2).reshape(*by_cell.shape[:2], -1).sum(axis=(0, 2)))
    by_cell = by_cell[:, order]
    cells, actions = by_cell.shape[1:3]
    open_values = np.zeros((len(by_cell), cells + 1, *by_cell.shape[3:]))
    open_values[:, :cells] = np.cumsum(by_cell.max(axis=2)[:, ::-1], axis=1)[:, ::-1]

    stack = [
        (np.arange(len(by_cell)), np.zeros((len(by_cell), 0), np.int64), open_values[:, 0] * 0.0)
    ]
    while stack:
        origin, rule, decided = stack.pop()
        depth = rule.shape[1]
        bound = _shared_value(decided + open_values[origin, depth])
        survivors = np.argsort(-bound, kind="stable")
        survivors = survivors[bound[survivors] > threshold()]
        if not len(survivors):
            continue
        origin, rule, decided = origin[survivors], rule[survivors], decided[survivors]
        if depth < cells:
            count(len(rule))
            origin = np.repeat(origin, actions)
            choice = np.tile(np.arange(actions), len(rule))
            rule = np.column_stack((np.repeat(rule, actions, axis=0), choice))
            decided = np.repeat(decided, actions, axis=0) + by_cell[origin, depth, choice]
            _push(
                stack,
                origin,
                rule,
                decided,
                _shared_value(decided + open_values[origin, depth + 1]),
            )
            continue
        complete = np.empty_like(rule)
        complete[:, order] = rule
        rules = (*(earlier[origin] for earlier in before), complete)
        if agents > 1:
            yield from _decide(decided, rules, threshold, count, last_by_response=last_by_response)
            continue
        for number, value in enumerate(decided.tolist()):
            if value > threshold():
                yield value, tuple(rule[number] for rule in rules)


_Partial = tuple[NDArray[np.int64], NDArray[np.int64], Array]


def _push(
    stack: list[_Partial],
    origin: NDArray[np.int64],
    rule: NDArray[np.int64],
    decided: Array,
    bound: Array,
) -> None:
    """Push partial rules in chunks by increasing bound, so that the best is popped first."""
    size = max(1, CHUNK // (rule.shape[1] + decided[0].size))
    order = np.argsort(-bound, kind="stable")
    for first in reversed(range(0, len(order), size)):
        part = order[first : first + size]
        stack.append((origin[part], rule[part], decided[part]))


def _shared_value(games: Array) -> Array:
    """The value of each game [games, cells.., actions..] for agents that see all cells."""
    agents = games.ndim // 2
    best = games.max(axis=tuple(range(agents + 1, games.ndim)))
    return best.reshape(len(games), -1).sum(axis=1)
