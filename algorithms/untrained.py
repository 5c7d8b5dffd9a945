"""Untrained: the models play as they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from colearn.advantage.raw_return import RawReturn
from colearn.contract import Algorithm, Credit, Parts
from colearn.credit.team import Team
from colearn.loss.policy_gradient import PolicyGradient
from colearn.rollout.shapes import Chain


@dataclass(frozen=True, kw_only=True)
class Untrained(Algorithm):
    """Nothing is learned: a run is one evaluation. With one agent it is the paper's raw model; with
    `wrapper: parallel`, `pipeline` or `discussion` it is one of its prompt-based baselines.

    Wrong when a method is to be judged by its gain: compare with the first evaluation of its own
    run, which has the same models and seeds.
    """

    learns: ClassVar[bool] = False

    credit: Credit = Team()
    """Of the returns that are reported."""

    def parts(self) -> Parts:
        """Chains are played; no advantage and no loss is ever computed."""
        return Parts(
            rollout=Chain(), credit=self.credit, advantage=RawReturn(), loss=PolicyGradient()
        )
