"""Chains of two players who move in turn, by hand."""

from __future__ import annotations

from dataclasses import replace

from colearn.contract.types import Action, Node, Observation, Tree
from colearn.methods.credit.payoff import Payoff

SHORT = (("a", {"a": 0.1}), ("b", {"b": 0.1}), ("a", {"a": 1.0, "b": -1.0}))
LONG = (
    ("a", {"a": 0.1}),
    ("b", {"b": 0.1}),
    ("a", {"a": 0.1}),
    ("b", {"b": 1.0, "a": -1.0}),
)
WON = (("a", {}), ("b", {}), ("a", {"a": 1.0, "b": -1.0}))
LOST = (("a", {}), ("b", {"a": -1.0, "b": 1.0}))


def game(edges, *, item="tic", tokens=None):
    """A chain: edge k is (who moves, what it pays); `tokens` by edge, 1 where it is not named."""
    nodes = []
    for index in range(len(edges) + 1):
        before = edges[index - 1] if index else None
        size = (tokens or {}).get(index, 1)
        nodes.append(
            Node(
                index=index,
                parent=index - 1 if index else None,
                path=(0,) * index,
                state=index,
                observations={edges[index][0]: Observation("?", (1,))}
                if index < len(edges)
                else {},
                actions={before[0]: Action("!", (2,) * size, (-1.0,) * size)} if before else {},
                local_rewards=before[1] if before else {},
                done=index == len(edges),
            )
        )
    tree = Tree(item=item, episode=0, agents=("a", "b"), nodes=tuple(nodes))
    return tree.credited(Payoff()(tree))


def cast(episode, **seats):
    """The same game with others in the named seats."""
    return replace(episode, cast=seats)
