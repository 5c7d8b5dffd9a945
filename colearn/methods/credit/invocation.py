"""Invocation credit (UnityMAS-O): a weighted sum of local, turn and trajectory reward per call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan
from typing import Any

from colearn.contract.reward_credit import Credit, Rewarded, local_part, weighed
from colearn.contract.scored import as_number
from colearn.contract.types import Rewards, Tree

from .payoff import Payoff


@dataclass(frozen=True, kw_only=True)
class Invocation(Credit):
    """r_v = l_node r_v^node + l_turn r_v^turn + l_traj r^traj (UnityMAS-O, Eq. 12).

    r^node is the agent's local reward, including delayed rewards. r^turn is the team's reward at
    this turn. r^traj is the team's total reward over the trajectory, averaged over the branches
    that follow the action. At each node, only the agents that act are credited. Each credit already
    includes later rewards, so set the discount to 0. Wrong when the team is paid at every turn:
    `turn` and `trajectory` together then count a reward twice. The trajectory of a truncated
    episode includes the rewards of its missing turns.
    """

    node: float = 1.0
    """l_node: weight of the agent's local reward."""
    turn: float = 0.0
    """l_turn: weight of the team reward of the turn."""
    trajectory: float = 0.0
    """l_traj: weight of the team reward of the trajectory."""

    reads = frozenset({"team", "local"})

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "at_once", self.trajectory == 0.0)

    def step(self, paid: Rewarded, agents: Sequence[str]) -> Mapping[str, float]:
        team = (self.turn + self.trajectory, paid.reward)
        return {agent: weighed([team, *local_part(paid, agent, self.node)]) for agent in agents}

    def __call__(self, tree: Tree[Any]) -> Rewards:
        ahead, returns = tree.complete_returns(1.0), tree.returns(1.0)
        local = Payoff()(tree)
        behind = [0.0] * len(tree.nodes)
        credited: list[dict[str, float]] = []
        for node in tree.nodes:
            if node.parent is None:
                credited.append({})
                continue
            total = behind[node.parent] + ahead[node.index]
            behind[node.index] = behind[node.parent] + as_number(node.reward)
            team = [(self.turn, node.reward), (self.trajectory, total)]
            credited.append({})
            for agent in node.actions:
                payoff = local[node.index][agent]
                paid = payoff != 0.0 or agent in node.local_rewards
                parts = [*team, (self.node, payoff)] if paid else team
                missing = isnan(ahead[node.index]) and not isnan(returns[node.index])
                credited[-1][agent] = nan if missing and self.trajectory else weighed(parts)
        return tuple(credited)
