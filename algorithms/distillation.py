"""On-policy distillation: every agent learns from a teacher on its own samples."""

from __future__ import annotations

from dataclasses import dataclass

from colearn.contract import Advantage, PolicyLoss, Rollout
from colearn.methods.advantage.zero import Zero
from colearn.methods.loss.policy_gradient import PolicyGradient
from colearn.rollout.shapes import Parallel

from ._policy import PolicyAlgorithm


@dataclass(frozen=True, kw_only=True)
class Distillation(PolicyAlgorithm):
    """Minimises KL(policy || teacher) on the policy's own samples; no reward is read.

    Each token has the advantage log teacher - log policy. The teacher of a model is
    `models.NAME.teacher`. With another algorithm, `algorithm.loss.teacher` adds the same term to
    the reward's advantages.

    Wrong when the teacher is worse than what the reward can teach: the team then stays at the
    teacher's return. Wrong when the teacher has another tokenizer, which is refused.
    """

    rollout: Rollout = Parallel(k=1)
    advantage: Advantage = Zero()
    loss: PolicyLoss = PolicyGradient(teacher=1.0)
