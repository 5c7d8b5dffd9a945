"""Credit assignment: maps task rewards to per-agent rewards of each joint action."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

from colearn.bounds import check_bounds
from colearn.types import Rewards, Tree

Paid = Literal["team", "local"]
"""The kinds of reward: of the whole team, and of one agent."""


class Rewarded(Protocol):
    """What one joint action led to, as far as rewards go: an `Outcome` or a `Node`."""

    @property
    def reward(self) -> float: ...

    @property
    def local_rewards(self) -> Mapping[str, float]: ...


class Credit(ABC):
    """A stateless strategy from a tree to a reward per edge and agent.

    Returns, advantages, critics and logged returns read credited rewards and nothing else. An
    agent left out of an edge is credited 0 there.
    """

    reads: frozenset[Paid]
    """The kinds of reward that it makes use of; a task that pays none of them is an error."""
    at_once: bool = True
    """`step` gives all that an edge is credited, apart from delayed rewards. False: later edges or
    the actions themselves count, too."""

    def __post_init__(self) -> None:
        """Errors: ConfigError for a setting outside of its bounds."""
        check_bounds(self)

    @abstractmethod
    def step(self, paid: Rewarded, agents: Sequence[str]) -> Mapping[str, float]:
        """Of one edge alone, by agent: what a shape compares the children of a node by."""

    def __call__(self, tree: Tree[Any]) -> Rewards:
        """Of every edge of a finished tree, {} at the root. Delayed rewards go to the edge of the
        action that earned them, each weighed by its branch's share of the branches below it."""
        found = [
            {} if node.parent is None else dict(self.step(node, tree.agents)) for node in tree.nodes
        ]
        if "local" in self.reads:
            for index, agent, reward in earned(tree):
                found[index][agent] = found[index].get(agent, 0.0) + reward
        return tuple(found)


def earned(tree: Tree[Any]) -> list[tuple[int, str, float]]:
    """Delayed rewards as (node that the action led to, agent, reward times the probability of the
    branch that paid it, a child drawn at random at every branching on the way)."""
    found = []
    below = tree.below()
    for node in tree.nodes:
        if not node.earned:
            continue
        chain = tree.ancestry(node.index)
        for (turn, agent), reward in node.earned.items():
            share = 1.0
            for before in chain[turn + 1 : -1]:
                share /= len(below[before.index])
            found.append((chain[turn + 1].index, agent, share * reward))
    return found
