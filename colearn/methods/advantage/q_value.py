"""Action values Q(h, a) as advantages, with SARSA targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any, Literal

from colearn.contract import Advantage, AgentValues, Episodes, NodeAdvantages, Values
from colearn.contract.bounds import Clip
from colearn.contract.scored import mean_scored
from colearn.contract.types import Tree

from .finish import clipped, normalized


@dataclass(frozen=True, kw_only=True)
class QValue(Advantage):
    """A = Q(h, a), or A = Q(h, a) minus the mean Q of the actions sampled at h. The critic learns
    from SARSA targets.

    Entry k of an agent's values is Q of the edge into node k, or None if the agent did not act
    there. Targets are r + gamma * (mean Q over the children). At the end of an episode, the target
    is r. If the rollout shape stopped a branch before the episode ended, the target of the branch's
    last edge is Q itself, so the error is 0. If the episode was truncated, no Q follows: the last
    edge then needs the algorithm's `missing_turn_reward`, or is not trained.

    Wrong when `baseline` is "none" and rewards have a large mean: the mean then only adds variance.
    """

    baseline: Literal["none", "siblings"] = "none"
    """"siblings": subtract the mean Q of the actions sampled at h. The baseline "siblings" needs a
    rollout shape that samples several joint actions per history."""
    clip: Clip | None = None
    """Bound: each advantage is clipped to [-clip, clip]."""
    normalize: bool = False
    """Whether to normalise each agent's advantages, after clipping, to zero mean and unit standard
    deviation over all actions of the agent."""

    reads = "q"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.baseline == "siblings":
            object.__setattr__(self, "minimum_group", 2)

    def __call__(
        self, episodes: Episodes, values: Sequence[AgentValues] | None = None
    ) -> list[NodeAdvantages]:
        if values is None:
            raise TypeError("QValue needs the critic's values")
        advantages = [self._advantages(e, v) for e, v in zip(episodes, values, strict=True)]
        advantages = clipped(advantages, self.clip)
        return normalized(advantages) if self.normalize else advantages

    def targets(self, episodes: Episodes, values: Sequence[AgentValues]) -> list[AgentValues]:
        return [
            {agent: self._sarsa(episode, agent, series) for agent, series in by_agent.items()}
            for episode, by_agent in zip(episodes, values, strict=True)
        ]

    def _advantages(self, episode: Tree[Any], values: AgentValues) -> NodeAdvantages:
        rows: list[dict[str, float]] = [{} for _ in episode.nodes]
        for agent, series in values.items():
            targets = self._sarsa(episode, agent, series)
            for siblings in episode.below():
                q = {
                    index: value
                    for index in siblings
                    if (value := series[index]) is not None
                    and agent in episode.nodes[index].actions
                    and not isnan(targets[index] or 0.0)
                }
                mean = sum(q.values()) / len(q) if q and self.baseline == "siblings" else 0.0
                for index, value in q.items():
                    rows[index][agent] = value - mean
        return tuple(rows)

    def _sarsa(self, episode: Tree[Any], agent: str, series: Values) -> list[float | None]:
        rewards = episode.rewards_of(agent)
        targets = [0.0] * len(episode.nodes)
        tails = episode.tails(episode.discount)
        for node, below in zip(reversed(episode.nodes), reversed(episode.below()), strict=True):
            # an edge without this agent forwards its rewards to the agent's next action
            next_q = [targets[c] if (q := series[c]) is None else q for c in below]
            future = tails[node.index] if node.truncated else mean_scored(next_q)
            targets[node.index] = rewards[node.index] + episode.discount * future
            if not (below or node.terminal) and (cut := series[node.index]) is not None:
                targets[node.index] = cut
        return [None if q is None else t for q, t in zip(series, targets, strict=True)]
