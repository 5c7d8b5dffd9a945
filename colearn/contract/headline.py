"""The headline metric of a task and whether higher or lower is better."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

Better = Literal["higher", "lower"]

OWN_METRICS = (
    "return",
    "objective",
    "turns",
    "cut_answers",
    "overflow",
    "tokens_per_turn",
    "response_seconds",
)
"""Evaluation metrics of every task."""


@dataclass(frozen=True, slots=True)
class Headline:
    """An evaluation metric, and whether higher or lower values of this metric are better.

    The headline metric determines the report's headline, first curve, ranking and probability of
    improvement. It also selects the best checkpoint.
    """

    metric: str = "return"
    better: Better = "higher"

    @property
    def sign(self) -> int:
        """1 if higher is better, else -1."""
        return 1 if self.better == "higher" else -1

    @property
    def label(self) -> str:
        """The metric's label for a column or an axis."""
        return self.metric if self.better == "higher" else f"{self.metric} (lower is better)"

    def improves(self, value: float, best: float | None) -> bool:
        """Whether a value is finite and better than `best`, the best value so far."""
        return math.isfinite(value) and (best is None or self.sign * (value - best) > 0)
