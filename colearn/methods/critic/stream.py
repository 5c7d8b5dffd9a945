"""Base class of critics that read an append-only stream of marked text."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Literal

from colearn.contract import Critic, ReadAt, Tokenize
from colearn.contract.packing import Packer
from colearn.contract.rows import Mark, Row
from colearn.contract.types import Node, Tree
from colearn.errors import ConfigError
from colearn.text.token_ids import token_ids

Texts = Sequence[tuple[str, str]]
"""Pieces of a critic's append-only text stream, as pairs (role, text)."""


class StreamCritic(Critic):
    """Reads V(h_t) at the end of the `seen` texts of node t, or Q(h_{t-1}, a_{t-1}) at the end of
    the `done` texts of node t."""

    value: Literal["v", "q"]

    @property
    def of_state(self) -> bool:
        return self.value == "v"

    @property
    def on_actor(self) -> ReadAt:
        return "observation" if self.value == "v" else "action"

    @abstractmethod
    def seen(self, node: Node[Any], reader: str) -> Texts:
        """Texts of turn t that precede the joint action: observations, and m_t if enabled."""

    @abstractmethod
    def done(self, node: Node[Any], reader: str) -> Texts:
        """Texts, in the reader's input, of the joint action that led to `node`."""

    def row(self, tree: Tree[Any], reader: str, tokenize: Tokenize, *, limit: int) -> Row:
        stream = text_stream(tree, self, reader, tokenize)
        packer = Packer()
        piece_of: dict[int | None, int] = {None: -1}
        needed = _above_values(tree, stream)
        for node in tree.nodes:
            if node.index not in needed:
                continue  # no value depends on the node, such as one after the last actions for V
            piece = piece_of[node.parent]
            added = len(stream.done[node.index]) + len(stream.seen[node.index])
            if node.truncated and self.value == "v" and packer.length(piece) + added > limit:
                continue  # the critic has no value of a history that it cannot read
            for tokens, kind in ((stream.done[node.index], "q"), (stream.seen[node.index], "v")):
                if tokens:
                    piece = packer.add(tokens, piece)
                if self.value == kind and stream.reads[node.index]:
                    packer.read(node.index, piece)
            piece_of[node.index] = piece
            check_length(packer.length(piece), limit)
        return packer.row()


def check_length(tokens: int, limit: int) -> None:
    """Errors: ConfigError if the stream is longer than the critic's limit."""
    if tokens > limit:
        raise ConfigError(
            f"critic.max_length: a stream of {tokens} tokens exceeds {limit}; raise it if the "
            "critic's model reads more, name one with a longer context, or shorten the task's texts"
        )


def by_node(
    tree: Tree[Any], mark_values: Iterable[tuple[Mark, float]]
) -> tuple[tuple[float | None, ...], tuple[tuple[float, ...], ...]]:
    """Return, for each node, the values read at one agent's marks: the value of the node itself
    (None if there is no such value), and the values at marks with `inside`, in order."""
    at_nodes: list[float | None] = [None] * len(tree.nodes)
    inside: list[list[float]] = [[] for _ in tree.nodes]
    for mark, value in mark_values:
        if mark.inside is None:
            at_nodes[mark.node] = value
        else:
            inside[mark.node].append(value)
    return tuple(at_nodes), tuple(map(tuple, inside))


@dataclass(frozen=True, slots=True)
class Stream:
    """Token ids of a tree: for each node, the ids of the observations and of the action that led to
    the node."""

    seen: tuple[tuple[int, ...], ...]
    done: tuple[tuple[int, ...], ...]
    reads: tuple[bool, ...]
    """For each node, whether a value is read at the node."""


def text_stream(tree: Tree[Any], critic: StreamCritic, reader: str, tokenize: Tokenize) -> Stream:
    """Return the stream of `reader` as token ids. Each piece of text is marked with its role and
    turn."""
    agents = critic.readers(tree.agents)[reader]
    observation_tokens, action_tokens, reads = [], [], []
    for node in tree.nodes:
        observation_tokens.append(
            tuple(tokens_of(critic.seen(node, reader), node.turn, tokenize))
            if node.observations or (critic.value == "v" and node.unanswered)
            else ()
        )
        action_tokens.append(
            tuple(tokens_of(critic.done(node, reader), node.turn - 1, tokenize))
            if node.parent is not None
            else ()
        )
        agents_read = node.shown if critic.value == "v" else node.actions
        reads.append(any(agent in agents_read for agent in agents))
    return Stream(tuple(observation_tokens), tuple(action_tokens), tuple(reads))


def text_ids(tokenizer: Any) -> Tokenize:
    """Return a function that converts text to token ids, as a critic reads them."""

    return lru_cache(maxsize=4096)(partial(token_ids, tokenizer))


def piece_tag(role: str, turn: int) -> str:
    """The marker before each piece of the stream."""
    return f"\n[{role} {turn}]\n"


def tokens_of(texts: Texts, turn: int, tokenize: Tokenize) -> list[int]:
    """Return the token ids of texts, each marked with its role and turn. A piece ends with its last
    word, without a line break, and the value is read at this word. If m_t or an observation is a
    single word, its value can thus be predicted without attention to earlier tokens."""
    ids: list[int] = []
    for piece in texts:
        match piece:
            case (str(role), str(text)):
                pass
            case _:
                raise TypeError(f"a critic reads pairs (role, text) of str, got {piece!r}")
        ids.extend(tokenize(f"{piece_tag(role, turn)}{text}"))
    return ids


def _above_values(tree: Tree[Any], stream: Stream) -> set[int]:
    """Return the nodes at which a value is read, and the ancestors of these nodes."""
    needed: set[int] = set()
    for node in reversed(tree.nodes):
        if stream.reads[node.index] or node.index in needed:
            needed.add(node.index)
            if node.parent is not None:
                needed.add(node.parent)
    return needed
