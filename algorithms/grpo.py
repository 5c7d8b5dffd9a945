"""GRPO: group-relative policy optimisation of a single agent (Shao et al. 2024)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from colearn.contract import Advantage, PolicyLoss, Rollout
from colearn.methods.advantage.group_baseline import GroupMean
from colearn.methods.loss.policy_gradient import PolicyGradient
from colearn.rollout.shapes import Parallel

from ._single import require_single
from .magrpo import MAGRPO


@dataclass(frozen=True, kw_only=True)
class GRPO(MAGRPO):
    """GRPO: one agent samples K chains per item; A = (G - mean) / std for all tokens of a chain.

    Token ratios are clipped. As in Dr. GRPO, the loss does not down-weight long responses.

    Wrong when there are several agents: GRPO would give all agents the chain's advantage at every
    turn. `magrpo` compares a turn only with turns after the same history.
    """

    rollout: Rollout = Parallel()
    advantage: Advantage = GroupMean(normalize_std=True)
    loss: PolicyLoss = PolicyGradient(ratio="token", clip=0.2)

    def check_team(self, agents: Sequence[str]) -> None:
        require_single(agents, "grpo", "magrpo")
