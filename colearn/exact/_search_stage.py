"""The joint distribution of states and cells at a turn, given the decision rules of earlier turns.

An agent's `cell` is the information on which the agent's action may depend: all observations so
far, the latest observation, or nothing. The joint distribution of the state and all cells is a
sufficient statistic for the remaining turns.
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
"""Number of decimals to which the conditional distributions of merged cells must agree."""


@dataclass(frozen=True, eq=False)
class Stage:
    """The joint distribution of states and cells at one turn, and the cell update of each agent."""

    weights: Array
    """P(s, cells), shape [cells of agent 1, .., cells of agent n, S]."""
    update: tuple[Index, ...]
    """By agent: the cell after (previous cell, observation); -1 if the pair is impossible."""


def first_stage(model: TabularModel) -> Stage:
    """Turn 0: one cell for each agent."""
    shape = (1,) * len(model.agents)
    return Stage(model.start.reshape(*shape, -1), ())


def next_stage(model: TabularModel, stage: Stage, rules: Rules, information: Information) -> Stage:
    """Compute the stage of the next turn, after the agents have acted by `rules`."""
    agents = len(model.agents)
    cells = stage.weights.shape[:agents]
    at = np.nonzero(stage.weights.sum(axis=-1))
    joint = np.ravel_multi_index(tuple(rules[i][at[i]] for i in range(agents)), model.action_shape)
    predicted = stage.weights[at]
    for action in np.unique(joint):
        predicted[joint == action] = predicted[joint == action] @ model.transition[action]
    by_observation = predicted[:, None, :] * model.observation[joint].transpose(0, 2, 1)
    row, observation = np.nonzero(by_observation.sum(axis=2))
    observations = np.unravel_index(observation, model.observation_shape)

    update, cells_after = [], []
    for i in range(agents):
        before, o = at[i][row], observations[i]
        cell_keys = {"history": before * model.observation_shape[i] + o, "memoryless": o}
        known, numbers = np.unique(cell_keys.get(information, o * 0), return_inverse=True)
        table = np.full((cells[i], model.observation_shape[i]), -1)
        table[before, o] = numbers
        update.append(table)
        cells_after.append((numbers, len(known)))
    weights = np.zeros((*(count for _, count in cells_after), len(model.states)))
    np.add.at(
        weights, tuple(numbers for numbers, _ in cells_after), by_observation[row, observation]
    )
    after = Stage(weights, tuple(update))
    return _merge(after) if information == "history" else after


def _merge(stage: Stage) -> Stage:
    """Merge cells c of an agent if P(s, cells of the other agents | c) is equal.

    Merged cells share their optimal actions, at this and all later turns (Oliehoek et al. 2009),
    so merging does not lose an optimal policy.
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
