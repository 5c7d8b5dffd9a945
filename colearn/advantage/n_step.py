"""The n-step return minus the value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from colearn.errors import ConfigError
from colearn.types import Tree

from .critic_based import CriticBased
from .recursion import Values, backed_up, bootstrap


@dataclass(frozen=True, kw_only=True)
class NStep(CriticBased):
    """r_t + ... + gamma^n V(h_{t+n}) - V(h_t); n counts the agent's own decisions, n=1 is the TD
    error and n >= H the Monte-Carlo return.

    Wrong when the right n differs between tasks compared: `GAE` mixes them all.
    """

    n: int

    def __post_init__(self) -> None:
        CriticBased.__post_init__(self)
        if self.n < 1:
            raise ConfigError(f"algorithm.n: must be 1 or more, got {self.n}; 1 is the TD error")

    def worth(self, tree: Tree[Any], values: Values) -> list[float]:
        deeper: Values = values
        for _ in range(self.n - 1):
            worth = bootstrap(tree, deeper, self.discount)
            deeper = backed_up(tree, values, worth, self.discount)
        return bootstrap(tree, deeper, self.discount)
