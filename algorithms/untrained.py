"""Untrained baseline: evaluation without learning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from colearn.contract import Algorithm, Credit, Parts
from colearn.methods.advantage.raw_return import RawReturn
from colearn.methods.credit.shared_reward import SharedReward
from colearn.methods.loss.policy_gradient import PolicyGradient
from colearn.rollout.shapes import Chain


@dataclass(frozen=True, kw_only=True)
class Untrained(Algorithm):
    """Untrained baseline: the run is one evaluation of the initial models.

    With one agent, this is the paper's raw model. With `wrapper: parallel`, `pipeline` or
    `discussion`, it is one of the paper's prompt-based baselines.

    Wrong when used to measure the gain of a trained run: use the first evaluation of the trained
    run, which has the same models and seeds.
    """

    learns: ClassVar[bool] = False

    credit: Credit = SharedReward()
    """Credit assignment of the reported returns."""

    def parts(self) -> Parts:
        """Returns the parts of an evaluation over chains; the advantage and the loss are never
        computed."""
        return Parts(
            rollout=Chain(), credit=self.credit, advantage=RawReturn(), loss=PolicyGradient()
        )
