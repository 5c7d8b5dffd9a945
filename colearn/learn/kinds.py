"""Learner kinds: construction and memory estimate of each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from colearn.config import OptimizerSettings
from colearn.contract import Kept, LearnerConstructor, LearnerKind

from .deepspeed_config import engine_config

_FLOAT = 4
_BUCKET = 500_000_000
"""DeepSpeed's default reduce_bucket_size, in elements."""


@dataclass(frozen=True, kw_only=True)
class Local(LearnerKind):
    """torch's AdamW on accelerate; the state is replicated in every process."""

    def constructor(self) -> LearnerConstructor:
        from .local import LocalLearner

        return LocalLearner

    def kept(self, trained: int, frozen_bytes: int, settings: Any, *, processes: int) -> Kept:
        return kept_by_zero(trained, frozen_bytes)


@dataclass(frozen=True, kw_only=True)
class DeepSpeed(LearnerKind):
    """One ZeRO engine for each learner, at stage 0, 2 or 3."""

    config: str = "zero2"
    """A shipped name (zero0, zero2, zero3, zero3_offload) or the path of a DeepSpeed JSON file."""

    def constructor(self) -> LearnerConstructor:
        from .deepspeed import DeepSpeedLearner

        return partial(DeepSpeedLearner, config_source=self.config)

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
    """Bytes per process under ZeRO. Stage 0 partitions nothing. Stage 1 partitions Adam's two
    states and adds a master copy of each process's part. Stage 2 also partitions the gradients,
    except two buckets of `bucket` elements. Stage 3 partitions the trained weights within an update
    and keeps them whole outside of it.
    """
    part = -(-trained // processes)
    gradients, weights = trained, trained
    if stage >= 2:
        gradients = part + 2 * min(bucket, trained)
    if stage >= 3:
        weights += part  # whole for generation and evaluation, beside this process's part
    return Kept(
        weights=_FLOAT * weights + frozen_bytes,
        gradients=_FLOAT * gradients,
        adam=2 * _FLOAT * (part if stage else trained),
        master=_FLOAT * part if stage else 0,
    )
