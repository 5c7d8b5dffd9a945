"""Learner kinds: construction and memory estimate of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from colearn.config import OptimizerSettings
from colearn.contract import Kept, Learner, LearnerKind

from .deepspeed_config import engine_config

if TYPE_CHECKING:
    from colearn.models.network import Network

_FLOAT = 4
_BUCKET = 500_000_000
"""DeepSpeed's own default of reduce_bucket_size, in elements."""


@dataclass(frozen=True, kw_only=True)
class Local(LearnerKind):
    """AdamW of torch on accelerate; every process keeps all of it."""

    def build(
        self,
        name: str,
        network: Network,
        settings: OptimizerSettings,
        *,
        token_budget: int,
        entropy: bool = False,
    ) -> Learner:
        from .local import LocalLearner

        return LocalLearner(name, network, settings, token_budget=token_budget, entropy=entropy)

    def kept(self, trained: int, frozen_bytes: int, settings: Any, *, processes: int) -> Kept:
        return kept_by_zero(trained, frozen_bytes)


@dataclass(frozen=True, kw_only=True)
class DeepSpeed(LearnerKind):
    """One ZeRO engine for each learner, at stage 0 or 2."""

    config: str = "zero2"
    """A shipped name (zero0, zero2) or the path of a DeepSpeed JSON."""

    def build(
        self,
        name: str,
        network: Network,
        settings: OptimizerSettings,
        *,
        token_budget: int,
        entropy: bool = False,
    ) -> Learner:
        from .deepspeed import DeepSpeedLearner

        return DeepSpeedLearner(
            name,
            network,
            settings,
            config_source=self.config,
            token_budget=token_budget,
            entropy=entropy,
        )

    def kept(
        self, trained: int, frozen_bytes: int, settings: OptimizerSettings, *, processes: int
    ) -> Kept:
        zero = engine_config(self.config, settings)["zero_optimization"]
        bucket = int(zero.get("reduce_bucket_size", _BUCKET))
        return kept_by_zero(
            trained, frozen_bytes, stage=zero["stage"], processes=processes, bucket=bucket
        )


def kept_by_zero(
    trained: int,
    frozen_bytes: int,
    *,
    stage: int = 0,
    processes: int = 1,
    bucket: int = _BUCKET,
) -> Kept:
    """Stage 0 divides nothing. Stage 1 divides Adam's two states and adds a copy of the part that a
    process steps; 2 divides the gradients, too, but for two buckets of `bucket` elements; 3 divides
    the trained weights as well.
    """
    part = -(-trained // processes)
    gradients, weights = trained, trained
    if stage >= 2:
        gradients = part + 2 * min(bucket, trained)
    if stage >= 3:
        weights = part
    return Kept(
        weights=_FLOAT * weights + frozen_bytes,
        gradients=_FLOAT * gradients,
        adam=2 * _FLOAT * (part if stage else trained),
        master=_FLOAT * part if stage else 0,
    )
