"""One reward for each call of an agent, from its own, its turn's and the trajectory's quality."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from colearn.contract.credit import Credit, Rewarded
from colearn.types import Rewards, Tree

from .payoff import Payoff


@dataclass(frozen=True, kw_only=True)
class Invocation(Credit):
    """r_v = l_node r_v^node + l_turn r_v^turn + l_traj r^traj (UnityMAS-O, Eq. 12).

    r^node is the agent's local reward, delayed ones included, r^turn the team's reward at this
    turn, r^traj the sum of the team's rewards over the trajectory, the mean over the branches that
    go on from here. Only who acts is credited; each credit is the action's whole worth, so the
    discount belongs at 0. Wrong when the team's reward is paid turn by turn: `turn` and
    `trajectory` then count it twice.
    """

    node: float = 1.0
    turn: float = 0.0
    trajectory: float = 0.0

    reads = frozenset({"team", "local"})

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "at_once", self.trajectory == 0.0)

    def step(self, paid: Rewarded, agents: Sequence[str]) -> Mapping[str, float]:
        team = (self.turn + self.trajectory) * paid.reward
        return {agent: self.node * paid.local_rewards.get(agent, 0.0) + team for agent in agents}

    def __call__(self, tree: Tree[Any]) -> Rewards:
        ahead = tree.returns(1.0)
        local = Payoff()(tree)
        behind = [0.0] * len(tree.nodes)
        found: list[dict[str, float]] = []
        for node in tree.nodes:
            if node.parent is None:
                found.append({})
                continue
            whole = behind[node.parent] + ahead[node.index]
            behind[node.index] = behind[node.parent] + node.reward
            team = self.turn * node.reward + self.trajectory * whole
            own = local[node.index]
            found.append({a: self.node * own.get(a, 0.0) + team for a in node.actions})
        return tuple(found)
