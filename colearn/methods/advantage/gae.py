"""Generalised advantage estimation from a state value V: TD error, n-step, GAE, Monte Carlo.

A decentralised critic predicts an agent's values at the nodes where the agent acts. A centralised
critic predicts values at every joint history. Rewards between two nodes with values are summed, so
sequential play needs no special case. `token_gae.py` estimates advantages over tokens instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from pydantic import Field

from colearn.contract import Advantage, AgentValues, Episodes, NodeAdvantages, Values
from colearn.contract.anneal import MEAN, faded
from colearn.contract.bounds import Anneal, Clip, Expectile
from colearn.contract.scored import mean_scored
from colearn.contract.types import Tree

from .expectile import weighted
from .finish import bootstrapped, clipped, normalized, scored


@dataclass(frozen=True, kw_only=True)
class GAE(Advantage):
    """A = r + gamma worth(h') - V(h), where worth(h') is a weighted sum of V(h') and the return
    after h'. With lambda = `lam`, A_k = delta_k + gamma lambda * mean over children of A (Schulman
    et al. 2016).

    lam=0 is the TD error delta = r + gamma V(h') - V(h) (CoLLM, Eq. 2 and 4). lam=1 is the return
    minus V (REINFORCE with a baseline), unbiased for any critic. The critic's target at a node is
    the mean of r + gamma worth over the node's edges (Eq. 3 and 5). Agents without values (agents
    that are not trained) get no advantage.

    Wrong at lam=0 when the critic is untrained and rewards come late: early turns then learn only
    from the predictions of the untrained critic. Wrong at lam=1 when episodes are long: A has the
    variance of all later rewards.
    """

    lam: Annotated[float, Field(ge=0.0, le=1.0, description="0.95 is usual")] = 0.0
    """lambda"""
    target_lam: Annotated[float, Field(ge=0.0, le=1.0, description="1.0 is usual")] | None = None
    """lambda of the critic's targets; None: `lam`. If `target_lam` is 1, the critic learns from
    whole returns, while the policy's advantages bootstrap from the critic (VC-PPO's decoupled
    GAE)."""
    steps: Annotated[int, Field(ge=1, description="1 is the TD error")] | None = None
    """n: the maximum number of steps before bootstrapping. The n-th step leads to the n-th
    following node with a V: the agent's n-th next decision or, with a centralised critic, the
    team's n-th next decision. With lam=1 the result is the n-step return."""
    clip: Clip | None = None
    """Clip each advantage to [-clip, clip] (the paper's "advantage clip"); targets stay
    unclipped."""
    normalize: bool = False
    """Whether to normalise each agent's advantages, after clipping, to zero mean and unit standard
    deviation over all actions of the agent in the given episodes."""
    expectile: Expectile = MEAN
    """tau: before clipping, a positive A is multiplied by 2 tau and a negative A by 2 (1 - tau).
    With a critic trained to the same expectile (`ValueLoss.expectile`), learning is risk-seeking if
    tau is above 1/2."""
    anneal_fraction: Anneal | None = None
    """The fraction of the training budget over which `expectile` anneals to 1/2; None: constant."""

    reads = "v"

    def at(self, done: float) -> GAE:
        if self.anneal_fraction is None:
            return self
        level = faded(self.expectile, self.anneal_fraction, done)
        return replace(self, expectile=level, anneal_fraction=None)

    def __call__(
        self, episodes: Episodes, values: Sequence[AgentValues] | None = None
    ) -> list[NodeAdvantages]:
        if values is None:
            raise TypeError(f"{type(self).__name__} needs the critic's values")
        advantages = [self._advantages(*pair) for pair in zip(episodes, values, strict=True)]
        advantages = clipped(scored(advantages), self.clip)
        return normalized(advantages) if self.normalize else advantages

    def targets(self, episodes: Episodes, values: Sequence[AgentValues]) -> list[AgentValues]:
        part = self if self.target_lam is None else replace(self, lam=self.target_lam)
        return [
            {
                agent: backed_up(
                    episode, episode.rewards_of(agent), series, part._worth(episode, agent, series)
                )
                for agent, series in by_agent.items()
            }
            for episode, by_agent in zip(episodes, values, strict=True)
        ]

    def _worth(self, episode: Tree[Any], agent: str, values: Values) -> list[float]:
        """Return the value of each node for one agent. An action bootstraps from the value of the
        node to which the action leads."""
        rewards = episode.rewards_of(agent)
        if self.steps is None:
            return worth_of_nodes(episode, rewards, values, self.lam)
        deeper: Values = values
        for _ in range(self.steps - 1):
            worth = worth_of_nodes(episode, rewards, deeper)
            far = backed_up(episode, rewards, values, worth)
            deeper = [
                near if near is None or deep is None else bootstrapped(near, deep, self.lam)
                for near, deep in zip(values, far, strict=True)
            ]
        return worth_of_nodes(episode, rewards, deeper)

    def _advantages(self, episode: Tree[Any], values: AgentValues) -> NodeAdvantages:
        rows: list[dict[str, float]] = [{} for _ in episode.nodes]
        for agent, series in values.items():
            worth = self._worth(episode, agent, series)
            rewards = episode.rewards_of(agent)
            for node in episode.nodes:
                if node.parent is None or agent not in node.actions:
                    continue
                before = series[node.parent]
                assert before is not None, "a critic gives a value wherever its agent acts"
                error = rewards[node.index] + episode.discount * worth[node.index] - before
                rows[node.index][agent] = weighted(error, self.expectile)
        return tuple(rows)


def _ahead(
    below: Sequence[int], rewards: Sequence[float], worth: Sequence[float], discount: float
) -> float:
    """Return the mean of r + discount * worth over the scored children in `below`; 0 if no child is
    scored."""
    return mean_scored(rewards[c] + discount * worth[c] for c in below)


def worth_of_nodes(
    episode: Tree[Any], rewards: Sequence[float], values: Values, lam: float = 0.0
) -> list[float]:
    """Return the value of each node. The value is 0 if the episode has ended, V if the critic
    predicts one, else the mean of r + discount * (value of the child) over the node's children.
    At a node where the episode was truncated and the critic predicts no V, the value is that of the
    missing turns (`Tree.tails`).

    With lambda = `lam`, the value of a node with a V is the TD(lambda) return: (1 - lambda) V +
    lambda * (mean over the children). If the rollout shape stopped a branch before the episode
    ended, the branch's last node keeps the critic's V.
    """
    below = episode.below()
    worth = [0.0] * len(episode.nodes)
    tails = episode.tails(episode.discount)
    for node in reversed(episode.nodes):
        value = values[node.index]
        if node.truncated:
            worth[node.index] = tails[node.index] if value is None else value
            continue
        if node.terminal:
            continue
        future = _ahead(below[node.index], rewards, worth, episode.discount)
        if value is None:
            worth[node.index] = future
        elif not below[node.index]:
            worth[node.index] = value
        else:
            worth[node.index] = bootstrapped(value, future, lam)
    return worth


def backed_up(
    episode: Tree[Any], rewards: Sequence[float], values: Values, worth: Sequence[float]
) -> list[float | None]:
    """Return the critic's target at each node with a value: the mean of r + discount * worth over
    the node's children.

    If the rollout shape or a truncation stopped a branch before the episode ended, the branch's
    last node has no children. The target at that node is the critic's V, so the error is 0.
    """
    return [
        _ahead(below, rewards, worth, episode.discount) if value is not None and below else value
        for value, below in zip(values, episode.below(), strict=True)
    ]
