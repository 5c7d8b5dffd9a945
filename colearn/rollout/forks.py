"""Chains that fork where one agent acts, and MHGPO's three ways of sampling groups with them
(Algorithms 2 to 5)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from colearn.contract import Branching, Rollout
from colearn.errors import ConfigError

from .shapes import Aligned, Group, Parallel


@dataclass(frozen=True, kw_only=True)
class ForkOn(Group, Aligned):
    """K actions of `agent` at its `occasion`-th action (from 0), one of everyone else; the K
    branches are chains from there (MHGPO's forks).

    At a fork in simultaneous play the others' one action meets each of the K. Wrong when all agents
    are to learn from one episode: only actions from the fork on have siblings to be compared with.
    """

    agent: str
    occasion: int = 0

    def samples(self, at: Branching) -> Mapping[str, int]:
        counts = dict.fromkeys(at.acting, 1)
        if self.agent in counts and at.acted.get(self.agent, 0) == self.occasion:
            counts[self.agent] = self.k
        return counts


@dataclass(frozen=True)
class ForkOnFirst(Parallel):
    """FoF (Algorithm 3): the entry agent answers G times, everyone after it once a branch; one tree
    and n G generations per item where n agents act one after the other.

    Wrong when the last agents decide the reward: only the first has siblings with its own prompt.
    """


@dataclass(frozen=True)
class _Forest(Group, Aligned):
    """Items grow by the shapes that `trees` gives; by itself this is a chain."""

    def samples(self, at: Branching) -> Mapping[str, int]:
        return dict.fromkeys(at.acting, 1)


@dataclass(frozen=True)
class Independent(_Forest):
    """IS (Algorithm 4): a tree per agent that forks where this agent first acts. `forked` groups
    then keep n G actions, G for each agent, and leave the rest of the trees out.

    Wrong when generation is dear: with n agents in a row the trees cost G (n + ... + 1) + (0 + ...
    + n-1) generations for n G that are trained on.
    """

    def trees(
        self, item: Any, agents: Sequence[str], rng: np.random.Generator
    ) -> Sequence[Rollout]:
        return [ForkOn(agent=agent, k=self.k) for agent in agents]


@dataclass(frozen=True)
class RoundRobin(_Forest):
    """RR (Algorithm 5): a tree per item that forks where one agent first acts, drawn with its
    probability. Agents before the fork act once, so their actions are compared over the batch
    (`ungrouped: shuffle`).

    With agents 1..n in a row an item costs sum over i of p_i ((i - 1) + G (n - i + 1))
    generations, at most FoF's n G. Wrong when a batch is small: few singles make few groups.
    """

    probabilities: Mapping[str, float] = field(default_factory=dict)
    """By agent, adding up to 1; empty: all alike. The paper's search team has 0.7, 0.1, 0.2."""

    def __post_init__(self) -> None:
        super().__post_init__()
        chances = self.probabilities.values()
        if chances and (min(chances) < 0.0 or not math.isclose(sum(chances), 1.0, abs_tol=1e-6)):
            raise ConfigError(
                f"probabilities: must be 0 or more and add up to 1, got {dict(self.probabilities)}"
            )

    def trees(
        self, item: Any, agents: Sequence[str], rng: np.random.Generator
    ) -> Sequence[Rollout]:
        for agent in self.probabilities:
            if agent not in agents:
                raise ConfigError(
                    f"algorithm.rollout.probabilities: no agent '{agent}'; "
                    f"there is {', '.join(agents)}"
                )
        given = np.array([self.probabilities.get(agent, 0.0) for agent in agents])
        # as far off 1 as the constructor lets them be, numpy refuses them
        chances = given / given.sum() if self.probabilities else None
        agent = agents[int(rng.choice(len(agents), p=chances))]
        return [ForkOn(agent=agent, k=self.k)]
