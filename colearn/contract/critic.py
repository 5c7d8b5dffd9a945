"""The critic: input of a value model, the positions of its values, and their agents."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from colearn.types import Tree

from .advantage import AgentValues
from .rows import Row

Tokenize = Callable[[str], Sequence[int]]
"""A text as the value model's token ids."""

ReadAt = Literal["observation", "action"]
"""Where in a turn a value is read: after what an agent sees there, V, or after its action, Q."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A marked piece of a critic's append-only stream: who speaks, and what."""

    role: str
    text: str


class Critic(ABC):
    """A strategy, frozen and picklable: which values there are, in which row each is read, and how
    numbers at a row's marks become values of agents and back.

    The experiment gives every reader a value model (a language model with a scalar head in fp32)
    and reads all values of a tree in one forward pass over the reader's `row`.
    """

    value: str
    """The kind of its values, such as "v" or "q"; an advantage that `reads` the same fits."""
    global_info: bool
    """Whether m_t is part of what is read."""
    read_once: bool = False
    """Values are read at rollout, before the critic moves, and not again while it is trained: the
    value loss must have `frozen_targets`."""
    reads_ids: bool = False
    """Rows hold the agents' own token ids: value model and agents must share a tokenizer."""

    @property
    def of_state(self) -> bool:
        """Whether a value at a node predicts the mean return of what follows it."""
        return False

    @property
    def on_actor(self) -> ReadAt | None:
        """Where a value head on the actor gives these values; None: it cannot."""
        return None

    @abstractmethod
    def readers(self, agents: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        """Value models by name, and the agents whose value each one gives."""

    @abstractmethod
    def row(self, tree: Tree[Any], reader: str, tokenize: Tokenize, *, limit: int) -> Row:
        """What a reader reads of a whole tree, with a mark wherever a value is read.

        Errors: ConfigError where the longest branch exceeds `limit` tokens.
        """

    def training_row(self, tree: Tree[Any], reader: str, tokenize: Tokenize, *, limit: int) -> Row:
        """The row that the value model is trained on: `row`, unless only some of its values have
        targets. Such a critic sets `read_once`."""
        return self.row(tree, reader, tokenize, limit=limit)

    def values(
        self, tree: Tree[Any], reader: str, row: Row, numbers: Sequence[float]
    ) -> AgentValues:
        """The numbers at a row's marks as values by agent and node. A tree's texts may be gone.

        Unless a mark names its agent, a number is the value of all agents of the reader, whether
        they act at the node or not: a bootstrap goes on from the next joint history, whoever acts
        there (CoLLM, Eq. 4).
        """
        found: dict[str, list[float | None]] = {
            agent: [None] * len(tree.nodes) for agent in self.readers(tree.agents)[reader]
        }
        for mark, number in zip(row.marks, numbers, strict=True):
            for agent in found if mark.agent is None else (mark.agent,):
                found[agent][mark.node] = number
        return {agent: tuple(series) for agent, series in found.items()}

    def numbers(
        self, tree: Tree[Any], reader: str, row: Row, values: AgentValues
    ) -> tuple[float, ...]:
        """The inverse: a number for each mark, that of the first agent who has one there."""
        agents = self.readers(tree.agents)[reader]
        return tuple(
            next(
                value
                for agent in (agents if mark.agent is None else (mark.agent,))
                if (value := values[agent][mark.node]) is not None
            )
            for mark in row.marks
        )
