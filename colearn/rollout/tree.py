"""The full K-ary tree of K-sampling MA-REINFORCE (CoLLM, Sec. 4.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from colearn.contract import Branching

from .aligned import Aligned, Group


@dataclass(frozen=True)
class KaryTree(Group, Aligned):
    """K joint actions at every history, so every action is compared with siblings.

    An episode of H turns costs n K (K^H - 1) / (K - 1) generations (Proposition 4.3).
    Wrong when the horizon is long: K=4, H=4 is 340 joint actions for one item.
    """

    def samples(self, at: Branching) -> Mapping[str, int]:
        return dict.fromkeys(at.acting, self.k)
