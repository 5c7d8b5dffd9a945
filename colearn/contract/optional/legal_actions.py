"""Optional interface: random legal actions."""

from __future__ import annotations

from typing import Any

import numpy as np

from .option import TaskOption


class LegalActions(TaskOption):
    """A task that provides random legal actions. The embedded model is warm-started on random legal
    actions. Checks, memory estimates and the program `random` also use random legal actions."""

    def legal_action(self, state: Any, agent: str, rng: np.random.Generator) -> str | None:
        """A legal action, chosen at random without regard to its quality; None: no action is
        available."""
        return None
