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

from .context import Part, contexts


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
    value: Literal["v", "q", "next"] | None = None,
) -> list[Row]:
    """The history of `agent` over a whole tree, every action of it a span in exactly one row.

    Every context (`Observation.fresh`) has rows of its own. One row holds a context if it fits
    `budget` tokens; a larger one is cut at its leaves into several rows, in which the shared prefix
    is context and trained only once. With `value` each V(h) or Q(h, a) of the agent is a mark in
    exactly one row, for a value head on the actor; with "next" the end of every node is one.
    """
    rows = []
    trained: set[int] = set()
    valued: set[int] = set()
    bunches = (bunch for context in contexts(tree, agent) for bunch in _bunches(context, budget))
    for bunch in bunches:
        packer, spans, marks, behaviour = _Packer(), list[Span](), list[Mark](), list[float]()
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
                (value == "v" and part.observation is not None)
                or (value == "q" and part.action is not None)
                or value == "next"
            ):
                valued.add(part.node)
                marks.append(Mark(part.node, packer.last_index(acted if value == "q" else here)))
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
            raise too_long(field_name, packer.position_after(here), limit)
    return Row(
        tokens=tuple(packer.tokens), pieces=tuple(packer.pieces), marks=tuple(marks), key=key
    )


def token_row(tree: Tree[object], agent: str, *, key: int = 0, limit: int, field_name: str) -> Row:
    """An agent's history over a whole tree, all of its contexts side by side, with a mark before
    every token of its actions. Without a mark where the agent's texts have no tokens.

    Errors: ConfigError where the longest branch exceeds `limit` tokens.
    """
    packer, marks = _Packer(), []
    for context in contexts(tree, agent):
        piece_of: dict[int | None, int] = {None: -1}
        for part in context:
            here = piece_of[part.parent]
            if part.action is not None and part.action.tokens:
                here = packer.add(part.action.tokens, here, 0)
                start = packer.pieces[here].start
                marks += [
                    Mark(part.node, start + k, inside=k) for k in range(len(part.action.tokens) - 1)
                ]
            if part.observation is not None and part.observation.tokens:
                here = packer.add(part.observation.tokens, here, 0)
                marks.append(Mark(part.node, packer.last_index(here)))
            piece_of[part.node] = here
            if packer.position_after(here) > limit:
                raise too_long(field_name, packer.position_after(here), limit)
    return Row(
        tokens=tuple(packer.tokens), pieces=tuple(packer.pieces), marks=tuple(marks), key=key
    )


def too_long(field_name: str, tokens: int, limit: int) -> ConfigError:
    """What a critic cannot read as a whole."""
    return ConfigError(
        f"{field_name}: a stream of {tokens} tokens exceeds {limit}; raise it, or shorten the "
        "task's texts"
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
