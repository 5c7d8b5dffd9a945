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

    The team's reward goes backward through the executed graph (Eq. 4), each role's penalties on
    top; an action is compared with the same role's in the other branches (Eq. 5). FoF sampling:
    G answers of the entry agent, one of everyone after it. Loss by Eq. 6: clip 0.2, KL 0.001.

    Wrong when roles act at the same time on different things, or when a critic is cheap: the
    baseline of a downstream role mixes prompts that are not alike. Use `mappo`.
    """

    rollout: Rollout = ForkOnFirst()
    credit: Credit = Backward()
    advantage: Advantage = Heterogeneous()
    loss: PolicyLoss = PolicyGradient(ratio="token", reduction="action_mean", clip=0.2, kl=0.001)
    discount: float = 0.0
    """Backward credit is an action's whole worth already."""


@dataclass(frozen=True, kw_only=True)
class MHGPOIndependent(MHGPO):
    """MHGPO, groups by prompt: a fork at each agent, in a tree of its own (IS).

    Of each tree only the forked answers are kept, so every group answers one prompt.

    Wrong when agents must fit each other: each is compared with the others held still.
    """

    rollout: Rollout = Independent()
    advantage: Advantage = Heterogeneous(keep="forked")


@dataclass(frozen=True, kw_only=True)
class MHGPORoundRobin(MHGPO):
    """MHGPO, round robin: a fork at one agent that is drawn for each item (RR).

    Actions before the fork are compared over the batch. Wrong when `train.episodes` is small.
    """

    rollout: Rollout = RoundRobin()
    advantage: Advantage = Heterogeneous(ungrouped="shuffle")
