"""A learner without a network: one number, which every step raises by 1, and a list of events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from colearn.contract import Accumulated
from colearn.contract.rows import Outputs, Row


class OneNumber:
    """A value is the row's baseline, if it has one, plus the number; the log-probability of every
    token is -1. `kl` is the divergence that every pass reports."""

    pass_group = None

    def __init__(
        self, name: str, events: list[str], number: float = 0.0, kl: float | None = None
    ) -> None:
        self.name, self.events = name, events
        self.number, self.steps, self.kl = number, 0, kl
        self.shifts: list[float] = []
        self.rows: list[Row] = []
        """The rows of the last pass."""

    def evaluate(self, rows: Sequence[Row], *, reference: bool = False) -> list[Outputs]:
        self.events.append(f"{self.name} reads")
        return [
            Outputs(
                logprobs=torch.full((row.action_tokens,), -1.0),
                entropy=None,
                values=torch.tensor(self._values(row)),
            )
            for row in rows
        ]

    def accumulate(self, rows: Sequence[Row], objective: Any) -> Accumulated:
        self.rows = list(rows)
        self.events.append(f"{self.name} differentiates")
        values = {n: self._values(row) for n, row in enumerate(rows) if row.marks}
        return Accumulated({} if self.kl is None else {"approx_kl": self.kl}, values)

    def step(self, done: float) -> dict[str, float]:
        self.events.append(f"{self.name} steps")
        self.number += 1.0
        self.steps += 1
        return {"grad_norm": 1.0}

    def observe(self, returns: Sequence[float], centre: float) -> None:
        self.events.append(f"{self.name} observes")

    def shift(self, by: float) -> None:
        self.shifts.append(by)
        self.number += by

    def _values(self, row: Row) -> tuple[float, ...]:
        return tuple(self.number + by for by in row.baselines or (0.0,) * len(row.marks))
