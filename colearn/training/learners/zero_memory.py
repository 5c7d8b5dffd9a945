"""Memory that one network needs in one process, with the local learner and with ZeRO."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from colearn.contract import MemoryFootprint

_FLOAT = 4
_BUCKET = 500_000_000
"""DeepSpeed's default reduce_bucket_size, in elements."""
_LIVE, _PREFETCHED, _STEPPED = 1_000_000_000, 50_000_000, 1_000_000_000
"""DeepSpeed's default stage3_max_live_parameters, stage3_prefetch_bucket_size, sub_group_size."""


def kept_locally(trained: int, frozen_bytes: int) -> MemoryFootprint:
    """Return the memory of a learner that holds its full state in every process. An optimiser step
    needs no additional memory, since AdamW is fused."""
    return MemoryFootprint(
        weights=_FLOAT * trained + frozen_bytes,
        gradients=_FLOAT * trained,
        adam=2 * _FLOAT * trained,
    )


def kept_by_zero(
    trained: int,
    frozen_bytes: int,
    zero: Mapping[str, Any],
    *,
    processes: int,
    whole: bool = False,
) -> MemoryFootprint:
    """Return the number of bytes per process with the settings in DeepSpeed's config section
    `zero_optimization`.

    Stage 0 partitions nothing. Stage 1 partitions Adam's moments, and each process holds a copy of
    the weights that it updates. Stage 2 also partitions the gradients, except for two buckets.
    During an update, stage 3 also partitions the trained weights, except for the weights that
    DeepSpeed has gathered. Stage 3 never frees the memory of the gradients. An optimiser step
    allocates a flat copy of the gradients and the square roots of the second moments. At stage 3, a
    step processes one sub-group of weights at a time. An offloaded optimiser state is in CPU
    memory.

    whole: whether the weights stay unpartitioned at stage 3, as for an adapter.
    """
    stage: int = zero["stage"]
    if not stage:
        footprint = kept_locally(trained, frozen_bytes)
        return MemoryFootprint(
            footprint.weights, footprint.gradients, footprint.adam, step=2 * _FLOAT * trained
        )
    part = _FLOAT * -(-trained // processes)
    bucket = _FLOAT * min(int(zero.get("reduce_bucket_size", _BUCKET)), trained)
    frozen = frozen_bytes
    if stage < 3:
        return MemoryFootprint(
            weights=_FLOAT * trained + frozen,
            gradients=(_FLOAT * trained if stage == 1 else part) + 2 * bucket,
            adam=2 * part,
            master=part,
            step=2 * part,
        )
    on_device = 0 if "offload_param" in zero else part
    weights = _FLOAT * trained + on_device + frozen  # whole for generation and evaluation
    live = int(zero.get("stage3_max_live_parameters", _LIVE)) + int(
        zero.get("stage3_prefetch_bucket_size", _PREFETCHED)
    )
    offloads = "offload_optimizer" in zero
    stepped = _FLOAT * int(zero.get("sub_group_size", _STEPPED))
    return MemoryFootprint(
        weights=weights,
        gradients=2 * bucket + (0 if offloads else part),
        adam=0 if offloads else 2 * part,
        master=0 if offloads else part,
        step=0 if offloads else 3 * min(part, stepped),
        updating=None if whole else min(_FLOAT * live, _FLOAT * trained) + on_device + frozen,
        gradients_stay=True,
        offloaded=(4 * part if offloads else 0) + part - on_device,
    )
