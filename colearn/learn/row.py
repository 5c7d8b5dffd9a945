"""A row: the token ids of one tree as one reader sees it, packed once, branches and all.

A chain is the plain case: one sequence, causal attention. In a tree the shared prefix stands once
and every branch attends to its own ancestors only, so each node is computed exactly once. A
context window C hides, from the tokens of a turn, what the agent had forgotten by then.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from colearn.contract import ReadAt
from colearn.contract.rows import Mark, Row, Span
from colearn.packing.contexts import Part, contexts
from colearn.packing.packer import Packer
from colearn.types import Tree


def window_start(previous: int, length: int, window: int | None) -> int:
    """First visible position of a turn: the most recent C of `length` pairs, never moving back."""
    return previous if window is None else max(previous, length - window)


def actor_rows(
    tree: Tree[object],
    agent: str,
    *,
    key: int = 0,
    window: int | None = None,
    temperature: float = 1.0,
    budget: int | None = None,
    value: ReadAt | Literal["next"] | None = None,
) -> list[Row]:
    """The history of `agent` over a whole tree, every action of it a span in exactly one row.

    Every context (`Observation.fresh`) has rows of its own. One row holds a context if it fits
    `budget` tokens; a larger one is cut at its leaves into several rows, in which the shared prefix
    is context and trained only once. With `value` each V(h), after an observation, or Q(h, a),
    after an action, is a mark in exactly one row, for a value head on the actor; with "next" the
    end of every node is one.
    """
    rows = []
    trained: set[int] = set()
    valued: set[int] = set()
    bunches = (bunch for context in contexts(tree, agent) for bunch in _bunches(context, budget))
    for bunch in bunches:
        packer, spans, marks, behaviour = Packer(), list[Span](), list[Mark](), list[float]()
        piece_of: dict[int | None, int] = {None: -1}
        start_of: dict[int | None, int] = {None: 0}
        for part in bunch:
            before = piece_of[part.parent]
            start = start_of[part.parent]
            here = before
            if part.action is not None:
                here = packer.add(part.action.tokens, before, start)
                if (
                    part.node not in trained
                    and part.action.tokens
                    and tree.nodes[part.node].samples(agent)
                ):
                    trained.add(part.node)
                    piece = packer.pieces[here]
                    spans.append(Span(part.node, piece.start, piece.end, packer.last_index(before)))
                    behaviour += part.action.logprobs
            if part.observation is not None:
                tokens = part.observation.tokens
                end = packer.position_after(here) + len(tokens)
                start = window_start(start, end, window)
                acted, here = here, packer.add(tokens, here, start)
            else:
                acted = here
            if part.node not in valued and (
                (value == "observation" and part.observation is not None)
                or (value == "action" and part.action is not None)
                or value == "next"
            ):
                valued.add(part.node)
                marks.append(
                    Mark(part.node, packer.last_index(acted if value == "action" else here))
                )
            piece_of[part.node], start_of[part.node] = here, start
        rows.append(
            Row(
                tokens=tuple(packer.tokens),
                pieces=tuple(packer.pieces),
                spans=tuple(spans),
                marks=tuple(marks),
                temperature=temperature or 1.0,
                key=key,
                behaviour=tuple(behaviour),
            )
        )
    return rows


_REPEATED = 1.25
"""Branches go into rows of their own where that makes at most so many times the tokens."""


def _bunches(context: Sequence[Part], budget: int | None) -> Iterable[Sequence[Part]]:
    """Parts, parents first, that cover all leaves of a context; each fits the budget if it can.

    Branches that share little lie apart: together they would need a mask, and attend in vain.
    """
    parents = {part.parent for part in context}
    length: dict[int | None, int] = {None: 0}
    for part in context:
        length[part.node] = length[part.parent] + part.size
    leaves = [part for part in context if part.node not in parents]
    packed = sum(part.size for part in context)
    if budget is not None and sum(length[leaf.node] for leaf in leaves) <= _REPEATED * packed:
        budget = 0
    if len(leaves) == 1 or budget is None or packed <= budget:
        return [context]
    place = {part.node: number for number, part in enumerate(context)}
    bunches: list[set[int]] = []
    for leaf in leaves:
        branch, cursor = {place[leaf.node]}, leaf.parent
        while cursor is not None:
            branch.add(place[cursor])
            cursor = context[place[cursor]].parent
        joined = (bunches[-1] | branch) if bunches else branch
        if bunches and sum(context[number].size for number in joined) <= budget:
            bunches[-1] = joined
        else:
            bunches.append(branch)
    return [[context[number] for number in sorted(bunch)] for bunch in bunches]
