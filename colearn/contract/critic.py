"""Critic interface: defines a value model's input, the positions at which values are read, and the
agents whose values they are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from colearn.contract.scored import mean_scored
from colearn.contract.types import Tree

from .advantage import AgentValues
from .rows import Row

Tokenize = Callable[[str], Sequence[int]]
"""Maps a string to the value model's token ids."""

ReadAt = Literal["observation", "action"]
"""Position in a turn at which a value is read: V after the observation, Q after the action."""


class Critic(ABC):
    """A frozen, picklable strategy. A critic has one or several readers; a reader is a value
    estimator for some of the agents. The critic packs a tree into one token row per reader. The
    critic also converts the value head's outputs at a row's marks into values by agent, and back.

    Every reader uses a value model (a language model with a scalar head in fp32). One forward pass
    over the reader's `row` gives all values of a tree.
    """

    value: str
    """The kind of values, such as "v" or "q"; it must equal the advantage's `reads`."""
    global_info: bool
    """Whether the global information m_t is part of the input."""
    read_once: bool = False
    """Whether values are read only once, at rollout, before the critic is trained. If so, the value
    loss must have `frozen_targets`."""
    reads_ids: bool = False
    """Whether rows hold the token ids that the agents sampled. If so, the value model must use the
    agents' tokenizer."""

    @property
    def of_state(self) -> bool:
        """Whether the value at a node predicts the mean return after that node."""
        return False

    @property
    def on_actor(self) -> ReadAt | None:
        """Position in a turn at which a value head on the actor would read this critic's values;
        None: a head on the actor cannot estimate these values."""
        return None

    @abstractmethod
    def readers(self, agents: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        """For each reader, by name: the agents whose values the reader estimates."""

    @abstractmethod
    def row(self, tree: Tree[Any], reader: str, tokenize: Tokenize, *, limit: int) -> Row:
        """A reader's packed input for a whole tree, with a mark at every position where a value is
        read.

        Errors: ConfigError if the longest branch exceeds `limit` tokens.
        """

    def training_row(self, tree: Tree[Any], reader: str, tokenize: Tokenize, *, limit: int) -> Row:
        """The value model's training row, by default equal to `row`. A critic with targets for only
        some values overrides this method and sets `read_once`."""
        return self.row(tree, reader, tokenize, limit=limit)

    def values(
        self, tree: Tree[Any], reader: str, row: Row, numbers: Sequence[float]
    ) -> AgentValues:
        """Convert the numbers (value-head outputs) at a row's marks into values by agent and node.
        The tree's texts are not needed.

        If a mark names an agent, the mark's number is this agent's value. Otherwise the number is
        the value of all agents of the reader, including agents that do not act. Bootstrapping uses
        the next joint history, regardless of which agent acts there (CoLLM, Eq. 4).
        """
        by_agent: dict[str, list[float | None]] = {
            agent: [None] * len(tree.nodes) for agent in self.readers(tree.agents)[reader]
        }
        for mark, number in zip(row.marks, numbers, strict=True):
            for agent in by_agent if mark.agent is None else (mark.agent,):
                by_agent[agent][mark.node] = number
        return {agent: tuple(series) for agent, series in by_agent.items()}

    def numbers(
        self, tree: Tree[Any], reader: str, row: Row, values: AgentValues
    ) -> tuple[float, ...]:
        """The inverse of `values`: for each mark, the mean over the row's trained agents that have
        a value there. Agents whose values are the same number share this number; values that are
        not scored are left out of the mean."""
        agents = row.agents or self.readers(tree.agents)[reader]
        return tuple(
            _shared(
                value
                for agent in (agents if mark.agent is None else (mark.agent,))
                if (value := values[agent][mark.node]) is not None
            )
            for mark in row.marks
        )


def _shared(values: Iterable[float]) -> float:
    first, *others = values
    return first if all(other == first for other in others) else mean_scored((first, *others))
