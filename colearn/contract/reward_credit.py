"""Reward credit: maps task rewards, including delayed ones, to per-agent rewards of each joint
action.

The rules (team, mixed, payoff, backward and others) are in `colearn.methods.credit`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from math import isnan
from typing import Any, Literal, Protocol

from colearn.contract.bounds import check_bounds
from colearn.contract.scored import as_number, sum_scored
from colearn.contract.types import Rewards, Tree

Paid = Literal["team", "local"]
"""Kinds of reward: rewards paid to the team, and rewards paid to a single agent (local)."""


class Rewarded(Protocol):
    """The rewards of one joint action: an `Outcome` or a `Node`."""

    @property
    def reward(self) -> float | None: ...

    @property
    def local_rewards(self) -> Mapping[str, float | None]: ...


class Credit(ABC):
    """A stateless rule that maps a tree to one reward per edge and agent.

    Returns (logged returns included), advantages and critics use only credited rewards. An agent
    without an entry at an edge is credited 0 at that edge. A credit is NaN if the task scored none
    of the rewards that contribute to it. If the task scored some of these rewards, the others add
    0.
    """

    reads: frozenset[Paid]
    """The kinds of reward that the rule uses. If a task pays none of these kinds, an error is
    raised."""
    at_once: bool = True
    """Whether `step` returns the full credit of an edge, except for delayed rewards. False: the
    credit also depends on later edges or on the actions themselves."""

    def __post_init__(self) -> None:
        """Errors: ConfigError for a setting out of bounds."""
        check_bounds(self)

    @abstractmethod
    def step(self, paid: Rewarded, agents: Sequence[str]) -> Mapping[str, float]:
        """The credit of one edge alone, by agent; rollout shapes compare children by this
        credit."""

    def __call__(self, tree: Tree[Any]) -> Rewards:
        """The credit of every edge of a finished tree, {} at the root. A delayed reward is credited
        to the edge of the action that earned the reward. The reward's weight is the share of the
        paying branch among all branches below that edge."""
        rewards = [
            {} if node.parent is None else dict(self.step(node, tree.agents)) for node in tree.nodes
        ]
        if "local" in self.reads:
            for index, agent, reward in earned(tree):
                if isnan(reward) and "team" in self.reads:
                    continue  # the team's reward is the credit
                rewards[index][agent] = rewards[index].get(agent, 0.0) + reward
        return tuple(rewards)


def weighed(parts: Iterable[tuple[float, float | None]]) -> float:
    """The weighted sum of (weight, reward) pairs. Rewards that are not scored, or have weight 0,
    add 0. NaN if no reward with a nonzero weight is scored."""
    return sum_scored(weight * as_number(reward) for weight, reward in parts if weight)


def local_part(paid: Rewarded, agent: str, weight: float = 1.0) -> list[tuple[float, float | None]]:
    """An agent's local reward as input of `weighed`; empty if the agent has no local reward."""
    local = paid.local_rewards
    return [(weight, local[agent])] if agent in local else []


def earned(tree: Tree[Any]) -> list[tuple[int, str, float]]:
    """Delayed rewards as (node that the action led to, agent, weighted reward), NaN if not scored.
    The weight is the probability of the paying branch under uniform choice of children."""
    earned_rewards = []
    below = tree.below()
    for node in tree.nodes:
        if not node.earned:
            continue
        chain = tree.ancestry(node.index)
        for (turn, agent), reward in node.earned.items():
            share = 1.0
            for before in chain[turn + 1 : -1]:
                share /= len(below[before.index])
            earned_rewards.append((chain[turn + 1].index, agent, share * as_number(reward)))
    return earned_rewards
