"""What a learner keeps beside its weights, and what DeepSpeed's ZeRO divides of it."""

from __future__ import annotations

from dataclasses import dataclass

from colearn.config import Config, OptimizerSettings
from colearn.learn.deepspeed_config import engine_config

_FLOAT = 4
_BUCKET = 500_000_000
"""DeepSpeed's own default of reduce_bucket_size, in elements."""


@dataclass(frozen=True, slots=True)
class Division:
    """How the learners' memory is divided among processes; stage None is the local learner."""

    stage: int | None = None
    processes: int = 1
    bucket: int = _BUCKET
    """Gradients, in elements, that ZeRO collects before it sends them."""


@dataclass(frozen=True, slots=True)
class Kept:
    """Bytes in one process for one network."""

    weights: int
    gradients: int
    adam: int
    master: int = 0
    """ZeRO's own copy of its part of the trained weights."""


def kept(trained: int, frozen_bytes: int, division: Division) -> Kept:
    """Of `trained` float32 parameters and `frozen_bytes` of others.

    Local and ZeRO 0 divide nothing. ZeRO 1 divides Adam's two states and adds a copy of the part
    that a process steps; ZeRO 2 divides the gradients, too, but for two buckets of them; ZeRO 3
    divides the trained weights as well.
    """
    stage, processes = division.stage or 0, division.processes
    part = -(-trained // processes)
    gradients, weights = trained, trained
    if stage >= 2:
        gradients = part + 2 * min(division.bucket, trained)
    if stage >= 3:
        weights = part
    return Kept(
        weights=_FLOAT * weights + frozen_bytes,
        gradients=_FLOAT * gradients,
        adam=2 * _FLOAT * (part if stage else trained),
        master=_FLOAT * part if stage else 0,
    )


def division_of(config: Config, settings: OptimizerSettings, processes: int) -> Division:
    """Errors: ConfigError for a DeepSpeed JSON that the learner would refuse."""
    if config.run.learner == "local":
        return Division(processes=processes)
    zero = engine_config(config.run.deepspeed, settings)["zero_optimization"]
    return Division(zero["stage"], processes, int(zero.get("reduce_bucket_size", _BUCKET)))
