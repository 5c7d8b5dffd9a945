"""MAPPO: PPO for every role, with critics (Yu et al. 2022; MHGPO's baseline, UnityMAS-O)."""

from __future__ import annotations

from dataclasses import dataclass

from colearn.advantage.gae import Bootstrap
from colearn.advantage.token_gae import TokenGAE
from colearn.contract import Advantage, Credit, Critic, PolicyLoss, Rollout
from colearn.credit.invocation import Invocation
from colearn.critic.decentralized import Decentralized
from colearn.critic.tokenwise import Tokenwise
from colearn.loss.policy_gradient import PolicyGradient
from colearn.rollout.shapes import Chain

from ._policy import PolicyAlgorithm


@dataclass(frozen=True, kw_only=True)
class MAPPO(PolicyAlgorithm):
    """MAPPO: PPO for every role, a value at every token (Yu et al. 2022; UnityMAS-O).

    Each call of a role is a sample of its own: r_v = local rewards + the trajectory's team
    reward (UnityMAS-O, Eq. 12; `credit.trajectory: 0` where the task pays every call itself) at its
    last token, GAE over its tokens with gamma = lambda = 1 (MHGPO, Eq. 2), clipped token ratios.

    MHGPO's Table 2 adds a KL penalty of 0.001 (`loss.kl`), which UnityMAS-O does not mention.

    GAE goes on from one call of a role to its next with `credit: {name: mixed}` and `discount: 1`.
    Wrong when roles are unlike each other and share a critic: it must then value unlike prompts
    with one head, which is where MHGPO saw it fail.
    """

    rollout: Rollout = Chain()
    credit: Credit = Invocation(trajectory=1.0)
    critic: Critic | None = Tokenwise()
    advantage: Advantage = TokenGAE()
    loss: PolicyLoss = PolicyGradient(ratio="token", clip=0.2)
    discount: float = 0.0
    """Invocation credit is a call's whole worth already."""


@dataclass(frozen=True, kw_only=True)
class MAPPOInvocation(MAPPO):
    """MAPPO, one value a call: critic and role may be any two models.

    A = r_v - V(prompt): V is read once, before the answer's first token, in the critic's own
    words.

    Wrong when answers are long and their beginnings tell what they will be worth.
    """

    critic: Critic | None = Decentralized(global_info=False)
    advantage: Advantage = Bootstrap(lam=1.0)
