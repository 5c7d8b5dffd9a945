"""A critic's append-only stream: its segments as token ids of the critic's own tokenizer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from colearn.contract import Critic, Segment
from colearn.types import Tree

Tokenize = Callable[[str], Sequence[int]]


@dataclass(frozen=True, slots=True)
class Stream:
    """For each node of a tree: the ids it adds before and after the value of its turn."""

    value: Literal["v", "q"]
    seen: tuple[tuple[int, ...], ...]
    done: tuple[tuple[int, ...], ...]
    reads: tuple[bool, ...]
    """Whether a value is read at the node."""


def text_stream(tree: Tree[Any], critic: Critic, reader: str, tokenize: Tokenize) -> Stream:
    """The stream of `reader` in the critic's own words: roles and turns marked, then the text."""
    assert critic.value != "token", "it reads ids, no stream"
    agents = critic.readers(tree.agents)[reader]
    seen, done, reads = [], [], []
    for node in tree.nodes:
        seen.append(
            tuple(_ids(critic.seen(node, reader), node.turn, tokenize)) if not node.terminal else ()
        )
        done.append(
            tuple(_ids(critic.done(node, reader), node.turn - 1, tokenize))
            if node.parent is not None
            else ()
        )
        here = node.observations if critic.value == "v" else node.actions
        reads.append(any(agent in here for agent in agents))
    return Stream(critic.value, tuple(seen), tuple(done), tuple(reads))


def piece_tag(role: str, turn: int) -> str:
    """What stands before a piece of the stream."""
    return f"\n[{role} {turn}]\n"


def _ids(segments: Sequence[Segment], turn: int, tokenize: Tokenize) -> list[int]:
    """Each piece ends with its own last word and not with a line break: a value is read there, and
    needs no attention to find m_t, or the newest observation, where that is one word."""
    ids: list[int] = []
    for segment in segments:
        ids.extend(tokenize(f"{piece_tag(segment.role, turn)}{segment.text}"))
    return ids
