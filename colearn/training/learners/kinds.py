"""Kinds of learners. Each kind builds the optimisers of its learners and estimates their memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from colearn.contract import LearnerKind, MemoryFootprint, Optimizer

from .deepspeed_config import engine_config
from .zero_memory import kept_by_zero, kept_locally


@dataclass(frozen=True, kw_only=True)
class Local(LearnerKind):
    """Trains with torch's AdamW on accelerate. The optimiser state is replicated in every
    process."""

    joint_passes = True

    def build(self, name: str, network: Any, settings: Any) -> Optimizer:
        from .torch_optimizer import TorchOptimizer

        return TorchOptimizer(name, network, settings)

    def kept(
        self, trained: int, frozen_bytes: int, settings: Any, *, processes: int
    ) -> MemoryFootprint:
        return kept_locally(trained, frozen_bytes)


@dataclass(frozen=True, kw_only=True)
class DeepSpeed(LearnerKind):
    """Trains with DeepSpeed: one ZeRO engine (stage 0, 1, 2 or 3) for each learner."""

    config: str = "zero2"
    """Name of a shipped DeepSpeed config (zero0 to zero3, zero3_offload) or path of a DeepSpeed
    JSON file."""

    def build(self, name: str, network: Any, settings: Any) -> Optimizer:
        from .deepspeed import DeepSpeedOptimizer

        return DeepSpeedOptimizer(name, network, settings, self.config)

    def kept(
        self, trained: int, frozen_bytes: int, settings: Any, *, processes: int
    ) -> MemoryFootprint:
        zero = engine_config(self.config, settings)["zero_optimization"]
        whole = settings.lora is not None
        return kept_by_zero(trained, frozen_bytes, zero, processes=processes, whole=whole)
