"""The critic: which text a value model reads, and whom its value is for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from colearn.types import Node


@dataclass(frozen=True, slots=True)
class Segment:
    """A marked piece of a critic's append-only stream: who speaks, and what."""

    role: str
    text: str


class Critic(ABC):
    """A strategy: V(h) or Q(h, a), central or decentral, as streams of marked text.

    The experiment gives every reader a value model (a language model with a scalar head in fp32)
    and reads all values of a tree in one forward pass: V(h_t) at the end of `seen` of node t,
    Q(h_{t-1}, a_{t-1}) at the end of `done` of node t. A critic of "token" values reads no stream:
    its value model is given an agent's own history, token by token, and values every prefix of it.
    """

    value: Literal["v", "q", "token"]
    global_info: bool
    """Whether m_t is part of the stream."""

    @abstractmethod
    def readers(self, agents: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        """Value models by name, and the agents whose value each one gives."""

    @abstractmethod
    def seen(self, node: Node[Any], reader: str) -> Sequence[Segment]:
        """What turn t adds before the joint action: observations, and m_t where it is on."""

    @abstractmethod
    def done(self, node: Node[Any], reader: str) -> Sequence[Segment]:
        """The joint action that led to `node`, as far as the reader sees it."""
