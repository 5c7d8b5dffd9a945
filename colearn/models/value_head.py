"""The value head: a scalar for each hidden state, in the scale of the returns seen."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import pstdev

import torch
from torch import Tensor, nn

_LEAST_SPREAD = 1e-3
"""Minimum standard deviation for the scaling of values, in the task's rewards."""


class ValueHead(nn.Module):
    """A scalar head in float32. It starts at V = 0, or at the centre of what it has observed."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, 1, dtype=torch.float32)
        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)
        self.register_buffer("scale", torch.tensor([0.0, 1.0, 0.0]))
        self.scale: Tensor
        """Centre and deviation of the returns seen, and in how many calls of `observe`."""

    def forward(self, hidden: Tensor) -> Tensor:
        """[M, D] to [M]."""
        with torch.autocast(hidden.device.type, enabled=False):
            values: Tensor = self.linear(hidden.float()).squeeze(-1)
            return self.scale[0] + self.scale[1] * values

    def observe(self, returns: Sequence[float], centre: float) -> None:
        """Move the scale to these returns: wholly at first, by a twentieth in the long run. The
        `centre` is what V should be of them on the whole: their mean, or another expectile."""
        before, deviation, calls = self.scale.tolist()
        part = max(1.0 / (calls + 1.0), 0.05)
        spread = max(pstdev(returns), _LEAST_SPREAD)
        found = before + part * (centre - before), deviation + part * (spread - deviation)
        self.scale.copy_(self.scale.new_tensor([*found, calls + 1]))
