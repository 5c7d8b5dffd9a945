"""MAPPO: PPO for every role, with critics (Yu et al. 2022; MHGPO's baseline, UnityMAS-O)."""

from __future__ import annotations

from dataclasses import dataclass

from colearn.contract import Advantage, Credit, Critic, PolicyLoss, Rollout
from colearn.methods.advantage.gae import GAE
from colearn.methods.advantage.token_gae import TokenGAE
from colearn.methods.credit.invocation import Invocation
from colearn.methods.critic.decentralized import Decentralized
from colearn.methods.critic.tokenwise import Tokenwise
from colearn.methods.loss.policy_gradient import PolicyGradient
from colearn.rollout.shapes import Chain

from ._policy import PolicyAlgorithm


@dataclass(frozen=True, kw_only=True)
class MAPPO(PolicyAlgorithm):
    """MAPPO: PPO for every role, with a value at every token (Yu et al. 2022; UnityMAS-O).

    Each call of a role is a separate sample. The reward of a call is r_v, the sum of local rewards
    and the trajectory's team reward (UnityMAS-O, Eq. 12); the call's last token receives r_v. If
    the task rewards every call, set `credit.trajectory: 0`. GAE runs over the call's tokens with
    gamma = lambda = 1 (MHGPO, Eq. 2). Token ratios are clipped. MHGPO's Table 2 adds a KL penalty
    with weight 0.001 (`loss.kl`). UnityMAS-O computes reference log-probabilities (sec. 5.4) but
    states no KL weight, so the default is 0.

    `credit: {name: mixed}` with `discount: 1` continues GAE from one call of a role to the role's
    next call.

    Wrong when dissimilar roles share a critic: one value head must then fit the prompts of all
    roles, and the MHGPO paper reports that MAPPO fails in this case.
    """

    rollout: Rollout = Chain()
    credit: Credit = Invocation(trajectory=1.0)
    critic: Critic | None = Tokenwise()
    advantage: Advantage = TokenGAE()
    loss: PolicyLoss = PolicyGradient(ratio="token", clip=0.2)
    discount: float = 0.0
    """Discount factor; it is 0 because invocation credit is already the return of a call."""


@dataclass(frozen=True, kw_only=True)
class MAPPOInvocation(MAPPO):
    """MAPPO with one value per call; critic and role may use different models.

    The advantage is A = r_v - V(prompt). V is computed once, before the answer's first token, with
    the critic's tokenizer.

    Wrong when answers are long and their first tokens already predict the reward: a value per token
    (`mappo`) would use these tokens.
    """

    critic: Critic | None = Decentralized(global_info=False)
    advantage: Advantage = GAE(lam=1.0)
