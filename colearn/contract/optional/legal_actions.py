"""Optional interface: random legal actions."""

from __future__ import annotations

from typing import Any

import numpy as np

from .option import TaskOption


class LegalActions(TaskOption):
    """A task that can say a legal action. The embedded model is warm-started on them, and checks,
    estimates and the program `random` play them."""

    def legal_action(self, state: Any, agent: str, rng: np.random.Generator) -> str | None:
        """A random legal action without skill; None: there is none to give."""
        return None
