"""One joint action per history: the rollout of the actor-critic methods (Alg. 1, lines 7-15)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .aligned import Aligned


@dataclass(frozen=True)
class Chain(Aligned):
    """n H generations per episode. Wrong when the baseline compares actions of one history."""

    def samples(self, turn: int, acting: Sequence[str]) -> Mapping[str, int]:
        return dict.fromkeys(acting, 1)
