"""DeepSpeed's CPU Adam in the place of torch's AdamW, for the local learner."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from deepspeed.ops.adam import DeepSpeedCPUAdam


class CPUAdamW(DeepSpeedCPUAdam):
    """Takes the arguments of torch's AdamW that learners give, and keeps its state as AdamW does:
    the number of steps is a tensor."""

    def __init__(
        self,
        groups: Iterable[Any],
        *,
        lr: float,
        betas: tuple[float, float] = (0.9, 0.999),
        weight_decay: float = 0.0,
        fused: bool = False,
    ) -> None:
        super().__init__(groups, lr=lr, betas=betas, weight_decay=weight_decay, adamw_mode=True)

    def step(self, closure: Any = None) -> None:
        self._count(int)
        super().step(closure)
        self._count(lambda steps: torch.tensor(float(steps)))

    def _count(self, kind: Any) -> None:
        for state in self.state.values():
            state["step"] = kind(state["step"])
