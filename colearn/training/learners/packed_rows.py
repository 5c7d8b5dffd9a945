"""Builds actor rows: the tokens of one agent's tree, packed so that each node occurs once.

A chain is one sequence with causal attention. In a tree, the shared prefix occurs once, and every
branch attends only to its ancestors. With a context window of C tokens, the tokens of a turn do not
attend to tokens outside the window.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from colearn.contract import ReadAt
from colearn.contract.packing import Packer, contexts
from colearn.contract.rows import Row
from colearn.contract.types import Node, Tree


def window_start(previous: int, length: int, window: int | None) -> int:
    """Return the first visible position of a turn. The last C of `length` positions are visible (C:
    the context window), but no position before `previous`."""
    return previous if window is None else max(previous, length - window)


def actor_rows(
    tree: Tree[object],
    agent: str,
    *,
    number: int = 0,
    window: int | None = None,
    temperature: float = 1.0,
    budget: int | None = None,
    value: ReadAt | Literal["next"] | None = None,
) -> list[Row]:
    """Build the rows of `agent`'s histories in tree `number`. Each action of the agent is a span (a
    range of trained tokens) in exactly one row.

    Every context (`Observation.fresh`) has separate rows. A context of at most `budget` tokens is
    one row; a larger context is split into several rows with different leaves. These rows repeat
    the shared prefix as context, but each action in the prefix is trained only once. `value` sets
    the marks: the tokens at which a value head on the actor is read. Each V(h) after an
    observation, or each Q(h, a) after an action, has a mark in exactly one row. "next" marks the
    end of every node.
    """
    rows = []
    trained: set[int] = set()
    valued: set[int] = set()
    bunches = (
        bunch
        for context in contexts(tree, agent, unanswered=value == "observation")
        for bunch in _bunches(context, agent, budget)
    )
    for bunch in bunches:
        packer = Packer()
        piece_of: dict[int | None, int] = {None: -1}
        start_of: dict[int | None, int] = {None: 0}
        for node in bunch:
            action, observation = node.actions.get(agent), node.observations.get(agent)
            piece, start = piece_of[node.parent], start_of[node.parent]
            if action is not None:
                piece = packer.add(action.tokens, piece, start)
                if node.index not in trained and action.tokens and node.samples(agent):
                    trained.add(node.index)
                    packer.train(node.index, action, piece)
            acted = piece
            if observation is not None:
                end = packer.length(piece) + len(observation.tokens)
                start = window_start(start, end, window)
                piece = packer.add(observation.tokens, piece, start)
            if node.index not in valued and (
                (value == "observation" and observation is not None)
                or (value == "action" and action is not None)
                or value == "next"
            ):
                valued.add(node.index)
                packer.read(node.index, acted if value == "action" else piece)
            piece_of[node.index], start_of[node.index] = piece, start
        rows.append(packer.row(temperature=temperature or 1.0, tree=number, reader=agent))
    return rows


_REPEATED = 1.25
"""Maximum factor by which the token count may grow when branches are put into separate rows."""


def _bunches(
    context: Sequence[Node[Any]], agent: str, budget: int | None
) -> Iterable[Sequence[Node[Any]]]:
    """Return subsets of a context's nodes, parents first, that together cover all leaves. If
    possible, each subset fits the budget.

    Branches that share few tokens are separated, since a joint row would need a mask.
    """
    parents = {node.parent for node in context}
    size = {node.index: _size(node, agent) for node in context}
    length: dict[int | None, int] = {None: 0}
    for node in context:
        length[node.index] = length[node.parent] + size[node.index]
    leaves = [node for node in context if node.index not in parents]
    packed = sum(size.values())
    if budget is not None and sum(length[leaf.index] for leaf in leaves) <= _REPEATED * packed:
        budget = 0
    if len(leaves) == 1 or budget is None or packed <= budget:
        return [context]
    by_index = {node.index: node for node in context}
    bunches: list[set[int]] = []
    for leaf in leaves:
        branch, cursor = {leaf.index}, leaf.parent
        while cursor is not None:
            branch.add(cursor)
            cursor = by_index[cursor].parent
        joined = (bunches[-1] | branch) if bunches else branch
        if bunches and sum(size[index] for index in joined) <= budget:
            bunches[-1] = joined
        else:
            bunches.append(branch)
    return [[by_index[index] for index in sorted(bunch)] for bunch in bunches]


def _size(node: Node[Any], agent: str) -> int:
    """Return the number of tokens that a node adds to a context."""
    parts = (node.actions.get(agent), node.observations.get(agent))
    return sum(len(part.tokens) for part in parts if part is not None)
