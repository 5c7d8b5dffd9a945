"""Value head: one scalar per hidden state, rescaled to the observed returns."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import pstdev

import torch
from torch import Tensor, nn

_LEAST_SPREAD = 1e-3
"""Minimum standard deviation used for rescaling, in units of the task's reward."""


class ValueHead(nn.Module):
    """A scalar head in float32. Before training, its output is the centre of the observed returns,
    or 0 if no returns have been observed."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, 1, dtype=torch.float32)
        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)
        self.register_buffer("scale", torch.tensor([0.0, 1.0, 0.0]))
        self.scale: Tensor
        """Centre and standard deviation of observed returns, and the number of `observe` calls."""

    def forward(self, hidden: Tensor) -> Tensor:
        """Values [M] of hidden states [M, D]."""
        with torch.autocast(hidden.device.type, enabled=False):
            values: Tensor = self.linear(hidden.float()).squeeze(-1)
            return self.scale[0] + self.scale[1] * values

    def observe(self, returns: Sequence[float], centre: float) -> None:
        """Update the scale with these returns. The n-th call has weight max(1/n, 1/20). `centre` is
        an expectile of these returns (for example the mean) that V should predict."""
        before, deviation, calls = self.scale.tolist()
        part = max(1.0 / (calls + 1.0), 0.05)
        spread = max(pstdev(returns), _LEAST_SPREAD)
        updated = before + part * (centre - before), deviation + part * (spread - deviation)
        self.scale.copy_(self.scale.new_tensor([*updated, calls + 1]))

    def shift(self, by: float) -> None:
        """Add a constant to all values."""
        self.scale[0] += by
