"""Kinds of learners. Each kind builds its learners and estimates their memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from colearn.contract import Learner, LearnerKind, MemoryFootprint

from .deepspeed_config import engine_config
from .zero_memory import kept_by_zero, kept_locally


@dataclass(frozen=True, kw_only=True)
class Local(LearnerKind):
    """Trains with torch's AdamW on accelerate. The optimiser state is replicated in every
    process."""

    def build(
        self, name: str, network: Any, settings: Any, *, token_budget: int, entropy: bool = False
    ) -> Learner:
        from .local_learner import LocalLearner

        return LocalLearner(name, network, settings, token_budget=token_budget, entropy=entropy)

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

    def build(
        self, name: str, network: Any, settings: Any, *, token_budget: int, entropy: bool = False
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
        self, trained: int, frozen_bytes: int, settings: Any, *, processes: int
    ) -> MemoryFootprint:
        zero = engine_config(self.config, settings)["zero_optimization"]
        whole = settings.lora is not None
        return kept_by_zero(trained, frozen_bytes, zero, processes=processes, whole=whole)
