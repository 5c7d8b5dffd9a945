"""Packing of trees into token rows. A context holds an agent's turns between two fresh prompts. The
packer concatenates the pieces of a tree's histories into a single row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from colearn.types import Node, Tree

from .rows import Mark, Piece, Row


def contexts(tree: Tree[Any], agent: str) -> list[list[Node[Any]]]:
    """The contexts of an agent, ordered by their first nodes; within each, parents precede
    children. A context consists of nodes of the tree, whose actions and observations are those of
    this agent in this context; the parent of the first node is None.

    Without fresh prompts, a single context holds every node. At a node with a fresh prompt, the
    action that led to the node ends one context and the prompt starts another. An episode does not
    continue from a cut node. This node contributes only the candidate action, since no agent acts
    on its observation.
    """
    found: list[list[Node[Any]]] = []
    of_node: list[int] = []
    for node in tree.nodes:
        if node.cut and not node.samples(agent):
            of_node.append(-1)  # another agent's candidate: not continued and not trained
            continue
        acted = {agent: node.actions[agent]} if agent in node.actions else {}
        seen = {agent: node.observations[agent]} if agent in node.observations else {}
        if node.cut:
            seen = {}
        before = None if node.parent is None else of_node[node.parent]
        opens = before is None or (agent in seen and seen[agent].fresh)
        if before is not None:
            continued = {} if opens else seen
            found[before].append(replace(node, actions=acted, observations=continued))
        if opens:
            found.append([replace(node, parent=None, actions={}, observations=seen)])
        of_node.append(len(found) - 1 if before is None or opens else before)
    return found


@dataclass(slots=True)
class Packer:
    """Builds the tokens and pieces of one row."""

    tokens: list[int] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)

    def add(self, tokens: Sequence[int], parent: int, visible_from: int = 0) -> int:
        """Append a piece after piece `parent` (-1 at the root) and return its number."""
        first = self.position_after(parent)
        start = len(self.tokens)
        self.tokens.extend(tokens)
        self.pieces.append(Piece(start, len(self.tokens), parent, first, visible_from))
        return len(self.pieces) - 1

    def position_after(self, piece: int) -> int:
        """Number of tokens in the history that ends with this piece."""
        if piece < 0:
            return 0
        before = self.pieces[piece]
        return before.first_position + before.end - before.start

    def last_index(self, piece: int) -> int:
        """Row index of the last token in the history that ends with this piece."""
        while self.pieces[piece].end == self.pieces[piece].start:
            piece = self.pieces[piece].parent
        return self.pieces[piece].end - 1

    def marked(self, marks: Sequence[Mark]) -> Row:
        """The row of a critic, whose values are read at the marks."""
        return Row(tokens=tuple(self.tokens), pieces=tuple(self.pieces), marks=tuple(marks))


def with_marks(row: Row, kept: Sequence[int]) -> Row:
    """Returns a critic's row with only the marks at the indices `kept` of `row.marks`, and only the
    pieces (runs of tokens) on which these marks depend."""
    of_token = {
        index: number for number, p in enumerate(row.pieces) for index in range(p.start, p.end)
    }
    needed: set[int] = set()
    for place in kept:
        number = of_token[row.marks[place].index]
        while number >= 0 and number not in needed:
            needed.add(number)
            number = row.pieces[number].parent
    tokens: list[int] = []
    pieces: list[Piece] = []
    moved = {-1: -1}
    by: dict[int, int] = {}  # how far the tokens of a piece have moved
    for number in sorted(needed):
        piece = row.pieces[number]
        moved[number], by[number] = len(pieces), len(tokens) - piece.start
        pieces.append(
            piece._replace(
                start=len(tokens),
                end=len(tokens) + piece.end - piece.start,
                parent=moved[piece.parent],
            )
        )
        tokens += row.tokens[piece.start : piece.end]
    marks = [row.marks[place] for place in kept]
    fields: dict[str, Any] = {
        name: tuple(numbers[place] for place in kept)
        for name in ("targets", "old_values", "baselines")
        if (numbers := getattr(row, name))
    }
    return replace(
        row,
        tokens=tuple(tokens),
        pieces=tuple(pieces),
        marks=tuple(replace(mark, index=mark.index + by[of_token[mark.index]]) for mark in marks),
        **fields,
    )
