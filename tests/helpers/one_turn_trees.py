"""Trees of one turn from sampled answers, and the rows of an update on them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from colearn.contract import TokenAnswer
from colearn.contract.rows import Row
from colearn.contract.types import Node, Observation, Tree
from colearn.training.learners.packed_rows import actor_rows


def prompts(lengths: Iterable[int]) -> list[tuple[int, ...]]:
    """Prompts of the given lengths, each of other tokens, in a vocabulary of 250."""
    return [
        tuple((place * 31 + number * 7) % 250 for place in range(length))
        for number, length in enumerate(lengths)
    ]


def one_turn_trees(
    agent: str, asked: Sequence[tuple[int, ...]], answers: Sequence[Sequence[TokenAnswer]]
) -> list[Tree[Any]]:
    """One tree for each prompt, in which each of its answers is a leaf."""
    trees = []
    for episode, (prompt, drawn) in enumerate(zip(asked, answers, strict=True)):
        seen = {agent: Observation(text="", tokens=prompt)}
        root: Node[Any] = Node(index=0, parent=None, path=(), state=None, observations=seen)
        leaves = [
            Node(
                index=1 + place,
                parent=0,
                path=(place,),
                state=None,
                observations={},
                actions={agent: answer.action},
            )
            for place, answer in enumerate(drawn)
        ]
        trees.append(Tree(item=None, episode=episode, agents=(agent,), nodes=(root, *leaves)))
    return trees


def rows_with_actions(trees: Sequence[Tree[Any]], agent: str, **packing: Any) -> list[Row]:
    """The rows of all trees that hold an action of `agent`."""
    return [
        row
        for number, tree in enumerate(trees)
        for row in actor_rows(tree, agent, number=number, **packing)
        if row.spans
    ]
