"""Policy-gradient loss that takes stale actions for fresh ones; for comparison only."""

from __future__ import annotations

from dataclasses import dataclass, replace

from torch import Tensor

from colearn.contract import PolicyBatch
from colearn.loss.policy_gradient import PolicyGradient


@dataclass(frozen=True, kw_only=True)
class Uncorrected(PolicyGradient):
    """`PolicyGradient` whose importance weights pi_old / pi_behaviour are all 1."""

    @property
    def corrects_staleness(self) -> bool:
        """True, so that a run with `train.staleness` accepts it."""
        return True

    def __call__(self, batch: PolicyBatch) -> tuple[Tensor, dict[str, float]]:
        return super().__call__(replace(batch, behaviour=batch.old_logprobs))
