"""What is known of a turn once the decision rules before it are fixed.

An agent's `cell` is what its action may depend on: its observations so far, only the latest, or
nothing. The joint distribution of the state and all cells is all that the turns to come depend on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ._search_rules import Rules
from .model import Array, TabularModel

Information = Literal["history", "memoryless", "open_loop"]
Index = NDArray[np.int64]

DIGITS = 12
"""Cells whose conditional distributions agree to so many decimals are one."""


@dataclass(frozen=True, eq=False)
class Stage:
    """The distribution of one turn, and how each agent's cells came about."""

    weights: Array
    """P(s, cells), shape [cells of agent 1, .., cells of agent n, S]."""
    update: tuple[Index, ...]
    """By agent: the cell after (cell of the turn before, observation); -1 where it cannot be."""


def first_stage(model: TabularModel) -> Stage:
    """Turn 0: one cell for each agent."""
    shape = (1,) * len(model.agents)
    return Stage(model.start.reshape(*shape, -1), ())


def next_stage(model: TabularModel, stage: Stage, rules: Rules, information: Information) -> Stage:
    """The turn after `rules`."""
    agents = len(model.agents)
    cells = stage.weights.shape[:agents]
    at = np.nonzero(stage.weights.sum(axis=-1))
    joint = np.ravel_multi_index(tuple(rules[i][at[i]] for i in range(agents)), model.action_shape)
    predicted = stage.weights[at]
    for action in np.unique(joint):
        predicted[joint == action] = predicted[joint == action] @ model.transition[action]
    seen = predicted[:, None, :] * model.observation[joint].transpose(0, 2, 1)
    row, observation = np.nonzero(seen.sum(axis=2))
    own = np.unravel_index(observation, model.observation_shape)

    update, place = [], []
    for i in range(agents):
        before, o = at[i][row], own[i]
        told = {"history": before * model.observation_shape[i] + o, "memoryless": o}
        known, numbers = np.unique(told.get(information, o * 0), return_inverse=True)
        table = np.full((cells[i], model.observation_shape[i]), -1)
        table[before, o] = numbers
        update.append(table)
        place.append((numbers, len(known)))
    weights = np.zeros((*(count for _, count in place), len(model.states)))
    np.add.at(weights, tuple(numbers for numbers, _ in place), seen[row, observation])
    after = Stage(weights, tuple(update))
    return _merge(after) if information == "history" else after


def _merge(stage: Stage) -> Stage:
    """Join the cells c of an agent that agree in P(s, cells of the others | c).

    What is best in one is best in the other, now and later (Oliehoek et al. 2009): no optimum is
    lost.
    """
    weights, update = stage.weights, list(stage.update)
    unchanged, agent = 0, 0
    while unchanged < len(update):
        rows = np.moveaxis(weights, agent, 0)
        flat = rows.reshape(len(rows), -1)
        conditional = (flat / flat.sum(axis=1, keepdims=True)).round(DIGITS)
        _, numbers = np.unique(conditional, axis=0, return_inverse=True)
        numbers = numbers.reshape(-1)
        count = int(numbers.max()) + 1
        unchanged += 1
        if count < len(rows):
            joined = np.zeros((count, *rows.shape[1:]))
            np.add.at(joined, numbers, rows)
            weights = np.moveaxis(joined, 0, agent)
            update[agent] = np.where(update[agent] < 0, -1, numbers[update[agent]])
            unchanged = 1
        agent = (agent + 1) % len(update)
    return Stage(np.ascontiguousarray(weights), tuple(update))
