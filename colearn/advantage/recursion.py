"""Backward recursions over a credited tree for one agent: returns, bootstraps, targets.

A decentralised critic gives an agent values where it acts, a centralised one wherever the joint
history is read. Rewards between two such nodes accumulate, so sequential play is no special case.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from colearn.contract import Values
from colearn.types import Credited


def own_rewards(episode: Credited[Any], agent: str) -> list[float]:
    """One agent's credited reward of each edge, by the node that the edge leads to."""
    return [rewards.get(agent, 0.0) for rewards in episode.rewards]


def ahead(
    below: Sequence[int], rewards: Sequence[float], worth: Sequence[float], discount: float
) -> float:
    """Mean over the children `below` of r + discount * worth; 0 where there is none."""
    if not below:
        return 0.0
    return sum(rewards[c] + discount * worth[c] for c in below) / len(below)


def worth_of_nodes(
    episode: Credited[Any], rewards: Sequence[float], values: Values, lam: float = 0.0
) -> list[float]:
    """Value of each node: 0 where the episode has ended, V where the critic gives one, else the
    mean over children of r + discount * their value.

    With `lam` (lambda) a node with a value mixes (1 - lambda) V and lambda times that mean: the
    TD(lambda) return. A branch that the shape cut before its end has its V.
    """
    tree = episode.tree
    below = tree.below()
    worth = [0.0] * len(tree.nodes)
    for node in reversed(tree.nodes):
        if node.terminal:
            continue
        value = values[node.index]
        future = ahead(below[node.index], rewards, worth, episode.discount)
        if value is None:
            worth[node.index] = future
        elif not below[node.index]:
            worth[node.index] = value
        else:
            worth[node.index] = (1.0 - lam) * value + lam * future
    return worth


def backed_up(
    episode: Credited[Any], rewards: Sequence[float], values: Values, worth: Sequence[float]
) -> list[float | None]:
    """The target of each node that has a value: mean over children of r + discount * worth.

    A cut branch has no children, so its target is its own V, an error of 0.
    """
    return [
        ahead(below, rewards, worth, episode.discount) if value is not None and below else value
        for value, below in zip(values, episode.tree.below(), strict=True)
    ]
