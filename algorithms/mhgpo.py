"""MHGPO: heterogeneous group policy optimisation of a workflow (Chen et al. 2025)."""

from __future__ import annotations

from dataclasses import dataclass

from colearn.contract import Advantage, Credit, PolicyLoss, Rollout
from colearn.methods.advantage.heterogeneous import Heterogeneous
from colearn.methods.credit.backward import Backward
from colearn.methods.loss.policy_gradient import PolicyGradient
from colearn.rollout.forks import ForkOnFirst, Independent, RoundRobin

from ._policy import PolicyAlgorithm


@dataclass(frozen=True, kw_only=True)
class MHGPO(PolicyAlgorithm):
    """MHGPO: heterogeneous groups, forked at the first agent (FoF; Chen et al. 2025).

    The team reward propagates backward through the executed graph (Eq. 4), and each role's
    penalties are added. An action is compared with the same role's actions in the other branches
    (Eq. 5). FoF sampling draws G answers of the entry agent, each of which starts a branch, and
    then one answer of each later agent in each branch. The loss is Eq. 6 with clip 0.2 and KL
    weight 0.001.

    Wrong when roles act concurrently on different subtasks, or when a critic is cheap: groups of
    the later roles contain answers to different prompts. Use `mappo`.
    """

    rollout: Rollout = ForkOnFirst()
    credit: Credit = Backward()
    advantage: Advantage = Heterogeneous()
    loss: PolicyLoss = PolicyGradient(ratio="token", reduction="action_mean", clip=0.2, kl=0.001)
    discount: float = 0.0
    """Discount factor; it is 0 because backward credit is already the return of an action."""


@dataclass(frozen=True, kw_only=True)
class MHGPOIndependent(MHGPO):
    """MHGPO with independent sampling (IS): one tree per agent, forked at that agent.

    Only the answers at the fork of each tree are trained, so all answers of a group have the same
    prompt.

    Wrong when agents must adapt to each other: within a group, the other agents' earlier answers
    are fixed.
    """

    rollout: Rollout = Independent()
    advantage: Advantage = Heterogeneous(keep="forked")


@dataclass(frozen=True, kw_only=True)
class MHGPORoundRobin(MHGPO):
    """MHGPO with round robin (RR): each item's tree forks at one randomly drawn agent.

    Actions before the fork have no siblings in their tree. They are grouped at random with other
    actions of the batch that have no siblings.

    Wrong when `train.episodes` is small: few actions are then available for these groups.
    """

    rollout: Rollout = RoundRobin()
    advantage: Advantage = Heterogeneous(ungrouped="shuffle")
