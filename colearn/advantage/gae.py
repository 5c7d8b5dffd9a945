"""Generalised advantage estimation on a tree (Schulman et al. 2016)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from colearn.errors import ConfigError
from colearn.types import Tree

from .critic_based import CriticBased
from .recursion import Values, bootstrap


@dataclass(frozen=True, kw_only=True)
class GAE(CriticBased):
    """A_k = delta_k + gamma lam * mean over children of A; the target is V plus the mean of A over
    the node's edges, the TD(lambda) return.

    lam=0 is the TD error, lam=1 the Monte-Carlo return minus V. Wrong when episodes have one turn:
    every lam gives the same, so do not tune it.
    """

    lam: float = 0.95

    def __post_init__(self) -> None:
        CriticBased.__post_init__(self)
        if not 0.0 <= self.lam <= 1.0:
            raise ConfigError(f"algorithm.lam: must lie in 0 to 1, got {self.lam}; 0.95 is usual")

    def worth(self, tree: Tree[Any], values: Values) -> list[float]:
        return bootstrap(tree, values, self.discount, self.lam)
