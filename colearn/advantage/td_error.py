"""The TD error: CoLLM's advantage for both critics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from colearn.types import Tree

from .critic_based import CriticBased
from .recursion import Values, bootstrap


@dataclass(frozen=True, kw_only=True)
class TDError(CriticBased):
    """delta = r + gamma V(h') - V(h), with target r + gamma V(h') (CoLLM, Eq. 2 to 5).

    Wrong when the critic is young and rewards come late: nothing but its own guess reaches the
    early turns. Use `GAE` there.
    """

    def worth(self, tree: Tree[Any], values: Values) -> list[float]:
        return bootstrap(tree, values, self.discount)
