"""Counters of the resources that a reward function used, for the report's cost lines."""

from __future__ import annotations

import threading
from collections.abc import Mapping


class Spent:
    """Thread-safe totals by name."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._totals: dict[str, float] = {}

    def add(self, **amounts: float) -> None:
        """Increases the totals."""
        with self._lock:
            for name, amount in amounts.items():
                self._totals[name] = self._totals.get(name, 0.0) + amount

    def totals(self) -> Mapping[str, float]:
        """The totals so far."""
        with self._lock:
            return dict(self._totals)

    def __getstate__(self) -> dict[str, float]:
        return dict(self.totals())

    def __setstate__(self, totals: dict[str, float]) -> None:
        self._lock = threading.Lock()
        self._totals = totals
