"""Counterfactual baseline (COMA): the return minus the mean Q of the agent's other answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

from colearn.contract import (
    Advantage,
    AgentValues,
    CounterfactualValues,
    Episodes,
    NodeAdvantages,
)
from colearn.contract.bounds import Clip, Share
from colearn.contract.scored import mean_scored
from colearn.contract.types import Tree

from .finish import bootstrapped, clipped, normalized, scored


@dataclass(frozen=True, kw_only=True)
class CounterfactualBaseline(Advantage):
    """A_i = G - mean over k of Q(h, a_-i, a_i^k), where the alternatives a_i^k are sampled from the
    policy of agent i. The formula is COMA's Eq. 4 with two changes: samples replace the sum over
    all actions, and the return G replaces Q of the executed action.

    Unbiased for every critic: the baseline of agent i does not depend on a_i. G is the TD(lambda)
    return r + gamma ((1 - lambda) Q' + lambda G') with lambda = `lam`. Q' is the Q of the next
    executed joint action, averaged over the agents' estimates. A `lam` below 1 lowers the variance
    but adds the critic's bias. The returns G are also the critic's targets. An agent without
    alternative actions has no advantage.

    With w = `critic_share`, w Q(h, a) + (1 - w) G replaces G; w = 1 gives Eq. 4 without the second
    change. A larger w removes noise from A, because the part of the return that Q does not explain
    has less weight. A larger w also adds bias where Q misjudges a_i. Use a positive w with a critic
    that was trained before the run (`critic.from`).

    Wrong when Q hardly distinguishes the agent's actions: the baseline then adds variance. Check
    `critic/action_worth`: a critic may explain most of the variance of the returns without
    distinguishing actions.
    """

    lam: Share = 1.0
    """lambda of the TD(lambda) return; 1: the Monte-Carlo return."""
    critic_share: Share = 0.0
    """w, the weight of the executed action's Q. The return has weight 1 - w, so with w = 0 the
    return is used alone."""
    clip: Clip | None = None
    """Bound: each advantage is clipped to [-clip, clip]."""
    normalize: bool = False
    """Whether to normalise each agent's advantages, after clipping, to zero mean and unit standard
    deviation over all actions of the agent."""

    reads = "counterfactual"

    def __call__(
        self, episodes: Episodes, values: Sequence[AgentValues] | None = None
    ) -> list[NodeAdvantages]:
        if values is None:
            raise TypeError("CounterfactualBaseline needs the critic's values")
        advantages = [self._advantages(e, v) for e, v in zip(episodes, values, strict=True)]
        advantages = clipped(scored(advantages), self.clip)
        return normalized(advantages) if self.normalize else advantages

    def targets(self, episodes: Episodes, values: Sequence[AgentValues]) -> list[AgentValues]:
        return [
            {
                agent: tuple(
                    None if q is None else g
                    for q, g in zip(series, self._returns(episode, agent, by_agent), strict=True)
                )
                for agent, series in by_agent.items()
            }
            for episode, by_agent in zip(episodes, values, strict=True)
        ]

    def _advantages(self, episode: Tree[Any], values: AgentValues) -> NodeAdvantages:
        rows: list[dict[str, float]] = [{} for _ in episode.nodes]
        for agent, series in values.items():
            assert isinstance(series, CounterfactualValues), "values of a counterfactual critic"
            returns = self._returns(episode, agent, values)
            for node, alternatives in enumerate(series.alternatives):
                if alternatives:
                    worth = self._worth(series[node], returns[node])
                    rows[node][agent] = worth - sum(alternatives) / len(alternatives)
        return tuple(rows)

    def _worth(self, q: float | None, returned: float) -> float:
        """Return the weighted sum of an executed action's return and Q (see `critic_share`); NaN
        if the return is not scored."""
        if q is None or self.critic_share == 0.0 or isnan(returned):
            return returned
        return bootstrapped(q, returned, 1.0 - self.critic_share)

    def _returns(self, episode: Tree[Any], agent: str, values: AgentValues) -> list[float]:
        """Compute, from one agent's credited rewards, the TD(lambda) return of every edge."""
        rewards, returns = episode.rewards_of(agent), [0.0] * len(episode.nodes)
        tails = episode.tails(episode.discount)
        for node, below in zip(reversed(episode.nodes), reversed(episode.below()), strict=True):
            ahead = [self._mixed(child, returns[child], values) for child in below]
            future = tails[node.index] if node.truncated else mean_scored(ahead)
            returns[node.index] = rewards[node.index] + episode.discount * future
        return returns

    def _mixed(self, child: int, following: float, values: AgentValues) -> float:
        values_of_child = [q for series in values.values() if (q := series[child]) is not None]
        if self.lam == 1.0 or not values_of_child:
            return following
        value = sum(values_of_child) / len(values_of_child)
        return bootstrapped(value, following, self.lam)
