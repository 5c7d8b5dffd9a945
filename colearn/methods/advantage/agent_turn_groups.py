"""Advantages in groups by agent and turn (AT-GRPO), and in groups by agent alone (GRPO applied to a
team)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import isnan, nan
from typing import Any

from colearn.contract import Advantage, AgentValues, Episodes, NodeAdvantages
from colearn.contract.bounds import Clip
from colearn.contract.types import Node, Tree

from .finish import EPSILON, clipped, deviation, scored


@dataclass(frozen=True, kw_only=True)
class AgentTurn(Advantage):
    """A = (r - mean) / deviation, where r is an action's immediate credited reward, and mean and
    deviation are over the action's group. Later rewards do not count (Stronger-MAS, Eq. 1 and Alg.
    1, line 11).

    The group key is (environment, agent, turn, token ids of the prompt). Only actions sampled from
    the same prompt are therefore compared, whatever the rollout shape. In a group of one action,
    the mean counts as 0 and the deviation as 1, as in public implementations. The advantage of a
    single action is therefore its reward. With the rollout shape `parallel` (the paper's ablation),
    every group after the first turn has one action.

    Wrong when the reward of an action arrives later: use `GroupMean`, which compares returns.
    """

    normalize_std: bool = True
    """Whether to divide by the group's population standard deviation + 1e-6."""
    clip: Clip | None = None
    """Bound: each advantage is clipped to [-clip, clip]."""

    minimum_group = 2
    reads_future = False

    def key(self, tree: Tree[Any], before: Node[Any], agent: str) -> Hashable:
        """Return the group key. Actions with equal keys are compared with each other."""
        prompt = tree.history(before.index, agent).tokens
        return tree.episode, agent, before.turn, prompt

    def __call__(
        self, episodes: Episodes, values: Sequence[AgentValues] | None = None
    ) -> list[NodeAdvantages]:
        groups: dict[Hashable, list[tuple[int, int, str]]] = {}
        for number, episode in enumerate(episodes):
            nodes = episode.nodes
            for node in nodes:
                if node.parent is not None:
                    for agent in filter(node.samples, node.actions):
                        key = self.key(episode, nodes[node.parent], agent)
                        groups.setdefault(key, []).append((number, node.index, agent))
        advantages: list[list[dict[str, float]]] = [[{} for _ in e.nodes] for e in episodes]
        for members in groups.values():
            rewards = [episodes[e].rewards[n].get(agent, 0.0) for e, n, agent in members]
            for (e, n, agent), advantage in zip(members, self._compared(rewards), strict=True):
                advantages[e][n][agent] = advantage
        return clipped(scored([tuple(rows) for rows in advantages]), self.clip)

    def _compared(self, rewards: list[float]) -> list[float]:
        if len(rewards) == 1:
            return rewards
        scored_rewards = [reward for reward in rewards if not isnan(reward)]
        if not scored_rewards:
            return [nan] * len(rewards)
        mean = sum(scored_rewards) / len(scored_rewards)
        scale = deviation(scored_rewards) + EPSILON if self.normalize_std else 1.0
        return [(reward - mean) / scale for reward in rewards]


@dataclass(frozen=True, kw_only=True)
class AgentQuestion(AgentTurn):
    """`AgentTurn` with the group key (environment, agent): the baseline of MAS + GRPO, which
    compares actions of different prompts and turns (Stronger-MAS, Sec. 5.2). The paper does not say
    whether a group contains the actions of all agents. In this implementation, each agent has
    separate groups.

    Wrong when histories diverge: the group then compares situations instead of actions.
    """

    def key(self, tree: Tree[Any], before: Node[Any], agent: str) -> Hashable:
        return tree.episode, agent
