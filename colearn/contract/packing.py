"""Packing of trees into token rows. A context holds an agent's turns between two fresh prompts. The
packer concatenates the pieces of a tree's histories into a single row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from colearn.contract.types import Action, Node, Tree

from .rows import ActionTokens, Mark, Piece, Row


def contexts(tree: Tree[Any], agent: str, *, unanswered: bool = False) -> list[list[Node[Any]]]:
    """The contexts of an agent, ordered by their first nodes; within each, parents precede
    children. A context consists of nodes, whose action and observation of this agent are those that
    belong to the context; the parent of the first node is None.

    Without fresh prompts, a single context holds every node. At a node with a fresh prompt, the
    action that led to the node ends one context and the prompt starts another. An episode does not
    continue from a cut node. This node contributes only the candidate action, since no agent acts
    on its observation. `unanswered`: whether a node at which the episode was truncated contributes
    its unanswered observation, if this observation has token ids.
    """
    found_contexts: list[list[Node[Any]]] = []
    of_node: list[int] = []
    for node in tree.nodes:
        if unanswered and agent in node.unanswered and node.unanswered[agent].tokens:
            node = replace(node, observations=node.unanswered)
        if node.cut and not node.samples(agent):
            of_node.append(-1)  # another agent's candidate: not continued and not trained
            continue
        observation = None if node.cut else node.observations.get(agent)
        before = None if node.parent is None else of_node[node.parent]
        opens = before is None or (observation is not None and observation.fresh)
        if before is not None:
            ends = opens or node.cut
            found_contexts[before].append(replace(node, observations={}) if ends else node)
        if opens:
            found_contexts.append([replace(node, parent=None, actions={})])
        of_node.append(len(found_contexts) - 1 if before is None or opens else before)
    return found_contexts


class Packer:
    """Builds a row from pieces. A piece is named by its number, and -1 is the empty history."""

    def __init__(self) -> None:
        self._tokens: list[int] = []
        self._pieces: list[Piece] = []
        self._spans: list[ActionTokens] = []
        self._marks: list[Mark] = []
        self._behaviour: list[float] = []

    def add(self, tokens: Sequence[int], parent: int, visible_from: int = 0) -> int:
        """Append a piece after piece `parent` and return its number."""
        start = len(self._tokens)
        self._tokens.extend(tokens)
        first = self.length(parent)
        self._pieces.append(Piece(start, len(self._tokens), parent, first, visible_from))
        return len(self._pieces) - 1

    def train(self, node: int, action: Action, piece: int) -> None:
        """Train the tokens of the action that led to `node`, which are this piece."""
        start, end, parent, _, _ = self._pieces[piece]
        self._spans.append(ActionTokens(node, start, end, self._last_index(parent)))
        self._behaviour += action.logprobs

    def read(
        self, node: int, piece: int, inside: int | None = None, agent: str | None = None
    ) -> None:
        """Read a value at the last token of the history that ends with a piece. The other arguments
        are those of `Mark`."""
        self._marks.append(Mark(node, self._last_index(piece), inside, agent))

    def read_within(self, node: int, piece: int) -> None:
        """Read a value before every token of an action, except the first."""
        start, end, *_ = self._pieces[piece]
        self._marks += [Mark(node, index, index - start) for index in range(start, end - 1)]

    def length(self, piece: int) -> int:
        """Number of tokens in the history that ends with a piece."""
        if piece < 0:
            return 0
        before = self._pieces[piece]
        return before.first_position + before.end - before.start

    def row(self, *, temperature: float = 1.0, tree: int = 0, reader: str = "") -> Row:
        """The row of all pieces. The arguments are fields of `Row`."""
        return Row(
            tokens=tuple(self._tokens),
            pieces=tuple(self._pieces),
            spans=tuple(self._spans),
            marks=tuple(self._marks),
            temperature=temperature,
            tree=tree,
            reader=reader,
            behaviour=tuple(self._behaviour),
        )

    def _last_index(self, piece: int) -> int:
        """Row index of the last token in the history that ends with a piece."""
        while self._pieces[piece].end == self._pieces[piece].start:
            piece = self._pieces[piece].parent
        return self._pieces[piece].end - 1


def with_marks(row: Row, indices: Sequence[int]) -> Row:
    """Returns a critic's row with only the marks at `indices` of `row.marks`, and only the
    pieces (runs of tokens) on which these marks depend."""
    of_token = {
        index: number for number, p in enumerate(row.pieces) for index in range(p.start, p.end)
    }
    needed: set[int] = set()
    for place in indices:
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
    marks = [row.marks[place] for place in indices]
    fields: dict[str, Any] = {
        name: tuple(numbers[place] for place in indices)
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
