"""A row: the token ids of one tree as one reader sees it, packed once, branches and all.

A chain is the plain case: one sequence, causal attention. In a tree the shared prefix stands once
and every branch attends to its own ancestors only, so each node is computed exactly once. A
context window C hides, from the tokens of a turn, what the agent had forgotten by then.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from colearn.contract.rows import Mark, Piece, Row, Span
from colearn.critic.stream import Stream
from colearn.errors import ConfigError
from colearn.types import Tree


@dataclass(slots=True)
class _Packer:
    tokens: list[int] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)

    def add(self, tokens: Sequence[int], parent: int, visible_from: int) -> int:
        first = self.position_after(parent)
        start = len(self.tokens)
        self.tokens.extend(tokens)
        self.pieces.append(Piece(start, len(self.tokens), parent, first, visible_from))
        return len(self.pieces) - 1

    def position_after(self, piece: int) -> int:
        if piece < 0:
            return 0
        before = self.pieces[piece]
        return before.first_position + before.end - before.start

    def last_index(self, piece: int) -> int:
        while self.pieces[piece].end == self.pieces[piece].start:
            piece = self.pieces[piece].parent
        return self.pieces[piece].end - 1


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
    value: Literal["v", "q"] | None = None,
) -> list[Row]:
    """The history of `agent` over a whole tree, every action of it a span in exactly one row.

    One row holds the tree if it fits `budget` tokens; a larger tree is cut at its leaves into
    several rows, in which the shared prefix is context and trained only once. With `value` each
    V(h) or Q(h, a) of the agent is a mark in exactly one row, for a value head on the actor.
    """
    rows = []
    trained: set[int] = set()
    valued: set[int] = set()
    for nodes in _bunches(tree, agent, budget):
        packer, spans, marks, behaviour = _Packer(), list[Span](), list[Mark](), list[float]()
        piece_of: dict[int | None, int] = {None: -1}
        start_of: dict[int | None, int] = {None: 0}
        for index in nodes:
            node = tree.nodes[index]
            before = piece_of[node.parent]
            start = start_of[node.parent]
            here = before
            if agent in node.actions:
                here = packer.add(node.actions[agent].tokens, before, start)
                if index not in trained and node.actions[agent].tokens:
                    trained.add(index)
                    piece = packer.pieces[here]
                    spans.append(Span(index, piece.start, piece.end, packer.last_index(before)))
                    behaviour += node.actions[agent].logprobs
            if agent in node.observations:
                tokens = node.observations[agent].tokens
                end = packer.position_after(here) + len(tokens)
                start = window_start(start, end, window)
                acted, here = here, packer.add(tokens, here, start)
            else:
                acted = here
            if index not in valued and (
                (value == "v" and agent in node.observations)
                or (value == "q" and agent in node.actions)
            ):
                valued.add(index)
                marks.append(Mark(index, packer.last_index(here if value == "v" else acted)))
            piece_of[index], start_of[index] = here, start
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


def stream_row(
    tree: Tree[object], stream: Stream, *, key: int = 0, limit: int, field_name: str
) -> Row:
    """A critic's stream over a whole tree: one row, a mark at every node with a value.

    Errors: ConfigError where the longest branch exceeds `limit` tokens.
    """
    packer, marks = _Packer(), []
    piece_of: dict[int | None, int] = {None: -1}
    needed = _above_values(tree, stream)
    for node in tree.nodes:
        if node.index not in needed:
            continue  # no value depends on it: the last actions, for V
        here = piece_of[node.parent]
        for tokens, read in ((stream.done[node.index], "q"), (stream.seen[node.index], "v")):
            if tokens:
                here = packer.add(tokens, here, 0)
            if stream.value == read and stream.reads[node.index]:
                marks.append(Mark(node.index, packer.last_index(here)))
        piece_of[node.index] = here
        if packer.position_after(here) > limit:
            raise ConfigError(
                f"{field_name}: a stream of {packer.position_after(here)} tokens exceeds {limit}; "
                "raise it, or shorten the task's texts"
            )
    return Row(
        tokens=tuple(packer.tokens), pieces=tuple(packer.pieces), marks=tuple(marks), key=key
    )


def _above_values(tree: Tree[object], stream: Stream) -> set[int]:
    """Nodes with a value, and all on the way to them."""
    needed: set[int] = set()
    for node in reversed(tree.nodes):
        if stream.reads[node.index] or node.index in needed:
            needed.add(node.index)
            if node.parent is not None:
                needed.add(node.parent)
    return needed


def _bunches(tree: Tree[object], agent: str, budget: int | None) -> Iterable[list[int]]:
    """Sets of nodes, parents first, that cover all leaves; each fits the budget where it can."""

    def size(indices: Iterable[int]) -> int:
        total = 0
        for index in indices:
            node = tree.nodes[index]
            if agent in node.actions:
                total += len(node.actions[agent].tokens)
            if agent in node.observations:
                total += len(node.observations[agent].tokens)
        return total

    everything = range(len(tree.nodes))
    if budget is None or size(everything) <= budget:
        return [list(everything)]
    bunches: list[set[int]] = []
    for leaf in tree.leaves():
        branch = {node.index for node in tree.ancestry(leaf.index)}
        if bunches and size(bunches[-1] | branch) <= budget:
            bunches[-1] |= branch
        else:
            bunches.append(branch)
    return [sorted(bunch) for bunch in bunches]
