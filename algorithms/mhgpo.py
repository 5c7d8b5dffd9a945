"""MHGPO: heterogeneous group policy optimisation of a workflow (Chen et al. 2025)."""

from __future__ import annotations

from dataclasses import dataclass

from colearn.advantage.heterogeneous import Heterogeneous
from colearn.contract import Advantage, Credit, PolicyLoss, Rollout
from colearn.credit.backward import Backward
from colearn.loss.policy_gradient import PolicyGradient
from colearn.rollout.forks import ForkOnFirst, Independent, RoundRobin

from ._policy import PolicyAlgorithm


@dataclass(frozen=True, kw_only=True)
class MHGPO(PolicyAlgorithm):
    """MHGPO: heterogeneous groups, forked at the first agent (FoF; Chen et al. 2025).

    The team reward propagates backward through the executed graph (Eq. 4), and each role's
    penalties are added. An action is compared with the same role's actions in the other branches
    (Eq. 5). FoF sampling draws G answers of the entry agent; in each branch it then draws one
    answer of each later agent. The loss is Eq. 6 with clip 0.2 and KL weight 0.001.

    Wrong when roles act concurrently on different subtasks, or when a critic is cheap: the group of
    a downstream role mixes different prompts. Use `mappo`.
    """

    rollout: Rollout = ForkOnFirst()
    credit: Credit = Backward()
    advantage: Advantage = Heterogeneous()
    loss: PolicyLoss = PolicyGradient(ratio="token", reduction="action_mean", clip=0.2, kl=0.001)
    discount: float = 0.0
    """0, because backward credit is already the return of an action."""


@dataclass(frozen=True, kw_only=True)
class MHGPOIndependent(MHGPO):
    """MHGPO with independent sampling (IS): one tree per agent, forked at that agent.

    Only the forked answers of each tree are trained, so every group answers one prompt.

    Wrong when agents must adapt to each other: each group holds the other agents fixed.
    """

    rollout: Rollout = Independent()
    advantage: Advantage = Heterogeneous(keep="forked")


@dataclass(frozen=True, kw_only=True)
class MHGPORoundRobin(MHGPO):
    """MHGPO with round robin (RR): each item's tree forks at one randomly drawn agent.

    Actions before the fork are compared across the batch.

    Wrong when `train.episodes` is small: few actions are then available for that comparison.
    """

    rollout: Rollout = RoundRobin()
    advantage: Advantage = Heterogeneous(ungrouped="shuffle")
