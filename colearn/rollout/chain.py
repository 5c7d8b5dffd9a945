"""One joint action per history: the rollout of the actor-critic methods (Alg. 1, lines 7-15)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from colearn.contract import Branching

from .aligned import Aligned


@dataclass(frozen=True, kw_only=True)
class Chain(Aligned):
    """n H generations per episode. Wrong when the baseline compares actions of one history."""

    def samples(self, at: Branching) -> Mapping[str, int]:
        return dict.fromkeys(at.acting, 1)
