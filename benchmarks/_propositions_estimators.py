"""Policy gradient estimates from trees: one per tree, from the library's advantages.

The paper's estimator (Eq. 1 with Proposition 4.1's mean over samples) is, for a tree whose turn t
has m_t joint actions,

    g_i = sum over t of (1 / m_t) sum over the joint actions k of turn t of A_k grad log pi_i(a_k),

with m_t = K^(t+1) in `tree(K)`. The library's loss divides by the number of all samples instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from _propositions_team import NODES_AT_ONCE, Array, Rows, Team, rows_of
from numpy.typing import NDArray

from colearn.contract import NodeAdvantages, Rollout
from colearn.contract.types import Tree

Index = NDArray[np.int64]
Places = Sequence[Sequence[Rows | None]]
MISSING = 0.02
"""Probability of private histories, over agents, that may be left out for want of chains."""

Advantages = Callable[[Sequence[Tree[Any]], Places], list[NodeAdvantages]]
"""Advantages of trees, given where their nodes are."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Samples:
    """The joint actions of some trees, one entry each."""

    trees: int
    tree: Index
    node: Index
    turn: Index
    parent: Index
    """Number of the history that was acted in, counted over all trees."""
    parents: int
    row: Mapping[str, Index]
    """By agent: the private history acted in."""
    action: Mapping[str, Index]


def samples_of(team: Team, trees: Sequence[Tree[Any]], places: Places) -> Samples:
    """What every agent did, where."""
    columns: list[tuple[int, ...]] = []
    histories = 0
    for number, (tree, rows) in enumerate(zip(trees, places, strict=True)):
        for node in tree.nodes:
            if node.parent is None:
                continue
            before = rows[node.parent]
            assert before is not None, "nobody acts where the episode has ended"
            done = tuple(node.actions[agent].tokens[0] for agent in team.agents)
            at = (number, node.index, node.turn - 1, histories + node.parent)
            columns.append((*at, *before, *done))
        histories += len(tree.nodes)
    tree_, node_, turn, parent, *rest = np.array(columns).T
    count = len(team.agents)
    return Samples(
        trees=len(trees),
        tree=tree_,
        node=node_,
        turn=turn,
        parent=parent,
        parents=histories,
        row=dict(zip(team.agents, rest[:count], strict=True)),
        action=dict(zip(team.agents, rest[count:], strict=True)),
    )


def flat(
    samples: Samples, advantages: Sequence[NodeAdvantages], agents: Sequence[str]
) -> dict[str, Array]:
    """By agent: the advantage of each of the samples."""
    places = list(zip(samples.tree.tolist(), samples.node.tolist(), strict=True))
    return {a: np.array([advantages[t][n][a] for t, n in places]) for a in agents}


def per_turn(samples: Samples, horizon: int) -> Array:
    """The paper's weights: 1 over the number of joint actions of the turn, in its tree."""
    cell = samples.tree * horizon + samples.turn
    return 1.0 / np.bincount(cell)[cell]


def per_sample(samples: Samples) -> Array:
    """The library's weights ("sample_mean"): 1 over the number of joint actions of the tree."""
    return 1.0 / np.bincount(samples.tree)[samples.tree]


def gradients(
    team: Team, samples: Samples, advantages: Mapping[str, Array], weights: Array
) -> Array:
    """One estimate of dJ / dtheta for each tree, shape [trees, numbers of a flat gradient]."""
    parts = []
    for agent in team.agents:
        table = team.tables[agent]
        summed = _scattered(
            samples.tree * len(table) + samples.row[agent],
            samples.action[agent],
            weights * advantages[agent],
            (samples.trees * len(table), table.shape[1]),
        ).reshape(samples.trees, *table.shape)
        summed -= summed.sum(axis=2, keepdims=True) * table
        parts.append(summed.reshape(samples.trees, -1))
    return np.concatenate(parts, axis=1)


def node_deviations(team: Team, samples: Samples, advantages: Mapping[str, Array]) -> Array:
    """|g_{i,t} - E[g_{i,t} | h_i]|^2 with the exact mean, shape [trees, turns]: g_{i,t} is the mean
    over the joint actions of one history; mean over the histories of a turn, sum over agents."""
    total = np.zeros((samples.trees, team.horizon))
    owner, first = np.unique(samples.parent, return_index=True)
    cell = samples.tree[first] * team.horizon + samples.turn[first]
    children = np.bincount(samples.parent, minlength=samples.parents)
    for agent, mean in conditional_means(team).items():
        table = team.tables[agent]
        summed = _scattered(
            samples.parent,
            samples.action[agent],
            advantages[agent] / children[samples.parent],
            (samples.parents, table.shape[1]),
        )[owner]
        rows = samples.row[agent][first]
        estimate = summed - summed.sum(axis=1, keepdims=True) * table[rows]
        squared = ((estimate - mean[rows]) ** 2).sum(axis=1)
        sums = np.bincount(cell, weights=squared, minlength=total.size)
        total += (sums / np.maximum(1, np.bincount(cell, minlength=total.size))).reshape(
            total.shape
        )
    return total


def conditional_means(team: Team) -> dict[str, Array]:
    """By agent: E[g_{i,t} | h_i], the exact gradient's row over P(h_i)."""
    sizes = np.cumsum([team.tables[agent].size for agent in team.agents])[:-1]
    parts = np.split(team.gradient, sizes)
    return {
        agent: part.reshape(team.tables[agent].shape) / team.reached[agent][:, None]
        for agent, part in zip(team.agents, parts, strict=True)
    }


def independent_deviations(
    team: Team, samples: Samples, advantages: Mapping[str, Array], turn: int, size: int
) -> Array:
    """The same for means over `size` chains through one private history that share nothing else.

    One number for each group of chains, weighted such that their mean is E over the turn's
    histories, summed over agents; empty where some likely history has not enough chains.
    """
    squared_errors, missing = [], 0.0
    for agent, mean in conditional_means(team).items():
        table = team.tables[agent]
        for row in np.nonzero(team.turn_of[agent] == turn)[0]:
            visits = np.nonzero((samples.turn == turn) & (samples.row[agent] == row))[0]
            groups = len(visits) // size
            share = team.reached[agent][row]
            if groups == 0:
                missing += share
                continue
            taken = visits[: groups * size]
            score = np.eye(table.shape[1])[samples.action[agent][taken]] - table[row]
            each = (advantages[agent][taken, None] * score).reshape(groups, size, -1)
            squares = ((each.mean(axis=1) - mean[row]) ** 2).sum(axis=1)
            squared_errors.append(squares * share / groups)
    if missing > MISSING:
        return np.zeros(0)
    terms = np.concatenate(squared_errors)
    terms *= len(terms) / (1.0 - missing / len(team.agents))
    return np.random.default_rng(0).permutation(terms)


def batches(
    team: Team, shape: Rollout, number: int, nodes: int, *, seed: int
) -> Iterator[tuple[list[Tree[Any]], Places, Samples]]:
    """`number` trees of about `nodes` nodes each, a memory's worth at a time."""
    step = max(1, NODES_AT_ONCE // nodes)
    for first in range(0, number, step):
        trees, _ = team.play(shape, min(step, number - first), seed=seed, first=first)
        places = [rows_of(team, tree) for tree in trees]
        yield trees, places, samples_of(team, trees, places)


def _scattered(row: Index, column: Index, weights: Array, shape: tuple[int, int]) -> Array:
    place = row * shape[1] + column
    sums: Array = np.bincount(place, weights, minlength=shape[0] * shape[1]).astype(np.float64)
    return sums.reshape(shape)
