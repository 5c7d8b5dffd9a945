"""Rollout shapes that fork a chain at one agent's action, among them MHGPO's three group-sampling
strategies (Algorithms 2 to 5)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from colearn.contract import Rollout
from colearn.contract.types import Node
from colearn.errors import ConfigError

from .shapes import Aligned, Group, Parallel


@dataclass(frozen=True, kw_only=True)
class ForkOn(Group, Aligned):
    """Samples K actions instead of one when `agent` acts for the `occasion`-th time (counted from
    0). Every other action is sampled once, and the K branches continue as chains (MHGPO's forks).

    In simultaneous play, each of the K actions is paired with the other agents' single action.
    Wrong when all agents should learn from one episode: actions before the fork have no siblings to
    be compared with.
    """

    agent: str
    """The agent whose action is forked."""
    occasion: int = 0
    """Index (from 0) of the forked action among this agent's actions."""

    def samples(self, at: Node[Any]) -> Mapping[str, int]:
        counts = dict.fromkeys(at.acting, 1)
        if self.agent in counts and at.acted.get(self.agent, 0) == self.occasion:
            counts[self.agent] = self.k
        return counts


@dataclass(frozen=True)
class ForkOnFirst(Parallel):
    """FoF (Algorithm 3): the entry agent answers G times, and each later agent answers once per
    branch. Each item has one tree. With n agents in sequence, an item costs n G generations.

    Wrong when the last agents decide the reward: only the entry agent's answers have siblings with
    equal prompts.
    """


@dataclass(frozen=True)
class _Forest(Group, Aligned):
    """Base class of strategies that assign a rollout shape to each tree. `trees` returns these
    shapes; the default shape is a chain."""

    def samples(self, at: Node[Any]) -> Mapping[str, int]:
        return dict.fromkeys(at.acting, 1)


@dataclass(frozen=True)
class Independent(_Forest):
    """IS (Algorithm 4): one tree per agent, which forks at this agent's first action. If groups use
    only `forked` actions, n G actions are trained (G for each agent), and all other actions are
    dropped.

    Wrong when generation is expensive: with n agents in sequence the trees cost
    G (n + ... + 1) + (0 + ... + n-1) generations, of which n G are trained.
    """

    def trees(
        self, item: Any, agents: Sequence[str], rng: np.random.Generator
    ) -> Sequence[Rollout]:
        return [ForkOn(agent=agent, k=self.k) for agent in agents]


@dataclass(frozen=True)
class RoundRobin(_Forest):
    """RR (Algorithm 5): one tree per item, which forks at the first action of one sampled agent.
    Agents before the fork act once, so the actions of these agents are grouped across the batch
    (`ungrouped: shuffle`).

    With agents 1..n in sequence, the expected cost of an item is sum_i p_i ((i - 1) + G (n - i +
    1)) generations. The cost is never higher than FoF's n G. Wrong when a batch is small: only a
    few groups can be formed from the ungrouped actions.
    """

    probabilities: Mapping[str, float] = field(default_factory=dict)
    """Probability of forking at each agent; the probabilities must sum to 1. If empty, all agents
    are equally likely. For a search team, the MHGPO paper uses 0.7, 0.1, 0.2."""

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
        weights = np.array([self.probabilities.get(agent, 0.0) for agent in agents])
        # numpy's tolerance is tighter than the constructor's
        chances = weights / weights.sum() if self.probabilities else None
        agent = agents[int(rng.choice(len(agents), p=chances))]
        return [ForkOn(agent=agent, k=self.k)]
