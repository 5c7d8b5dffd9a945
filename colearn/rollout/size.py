"""Bounds the number of joint actions of an iteration before its first episode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from colearn.contract import DecPOMDP, Rollout
from colearn.contract.checked_task import CheckedTask, item_name
from colearn.contract.part_errors import calling_part
from colearn.contract.rollout import Round
from colearn.contract.seeding import derive_rng
from colearn.contract.types import Node, Observation
from colearn.text.budget import large_iteration

from .shapes import Aligned

_READ = 16
"""Number of items whose horizons are read; some tasks generate items on demand."""


def oversized(
    task: DecPOMDP[Any, Any], items: Sequence[Any], shape: Rollout, *, episodes: int, budget: int
) -> str | None:
    """Returns a line if whole iterations may exceed the budget of environment steps by more than a
    tenth, else None. `budget`: 0 if the algorithm does not learn."""
    steps = largest_iteration(task, items, shape, episodes) if budget else None
    return None if steps is None else large_iteration(steps, budget)


def largest_iteration(
    task: DecPOMDP[Any, Any], items: Sequence[Any], shape: Rollout, episodes: int
) -> int | None:
    """Returns the number of joint actions of an iteration if no episode ends before its horizon.
    Returns None for tasks whose episodes are programs, which rarely reach the horizon."""
    if task.program or not len(items):
        return None
    horizon = max(CheckedTask(task).horizon_of(item) for item in items[: min(episodes, _READ)])
    agents = tuple(task.agents)
    if not all(isinstance(tree, Aligned) for tree in _trees(shape, items[0], agents)):
        first = CheckedTask(
            task, item_name(items[0])
        )  # the size of a node depends on who acts there
        agents = tuple(first.observe(first.reset(items[0], derive_rng("size")))) or agents
    return episodes * sum(
        joint_actions(tree, agents, horizon) for tree in _trees(shape, items[0], agents)
    )


def joint_actions(shape: Rollout, acting: Sequence[str], horizon: int) -> int:
    """Returns the number of joint actions of a tree whose branches all reach the horizon. At every
    node, the same agents act."""
    total, width = 0, 1
    for turn in range(horizon):
        with calling_part("algorithm.rollout", shape):
            children, continuing = _expand(shape, _node(acting, turn))
        total += width * children
        width *= continuing
    return total


def _expand(shape: Rollout, node: Node[Any]) -> tuple[int, int]:
    """Returns the numbers of a node's children, and of those that continue."""
    counts, tried = shape.samples(node), list[Round]()
    while (following := shape.next_round(node, counts, tried, _rng())) is not None:
        if not following.joint_actions:
            break
        credits = [dict.fromkeys(node.acting, 0.0) for _ in following.joint_actions]
        tried.append(Round(following.joint_actions, following.candidate_of, credits))
    children = sum(len(executed.joint_actions) for executed in tried)
    return children, len(shape.continues(node, tried, _rng()))


def _trees(shape: Rollout, item: Any, agents: Sequence[str]) -> Sequence[Rollout]:
    with calling_part("algorithm.rollout", shape):
        return shape.trees(item, agents, _rng())


def _rng() -> np.random.Generator:
    return derive_rng("size")


def _node(acting: Sequence[str], turn: int) -> Node[Any]:
    return Node(
        index=turn,
        parent=turn - 1 if turn else None,
        path=(0,) * turn,
        state=None,
        observations={agent: Observation("") for agent in acting},
        acted=dict.fromkeys(acting, turn),
    )
