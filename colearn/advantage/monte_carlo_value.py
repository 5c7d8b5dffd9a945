"""The Monte-Carlo return with a learned baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from colearn.types import Tree

from .critic_based import CriticBased
from .recursion import Values, bootstrap


@dataclass(frozen=True, kw_only=True)
class MonteCarloValue(CriticBased):
    """G - V(h), with target G: unbiased whatever the critic says (REINFORCE with a baseline).

    Wrong when episodes are long or the team is noisy: all later luck is in G.
    """

    def worth(self, tree: Tree[Any], values: Values) -> list[float]:
        return bootstrap(tree, values, self.discount, trace=1.0)
