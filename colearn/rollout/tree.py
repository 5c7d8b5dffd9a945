"""The full K-ary tree of K-sampling MA-REINFORCE (CoLLM, Sec. 4.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .aligned import Aligned, check_samples


@dataclass(frozen=True)
class KaryTree(Aligned):
    """K joint actions at every history, so every action is compared with siblings.

    An episode of H turns costs n K (K^H - 1) / (K - 1) generations (Proposition 4.3).
    Wrong when the horizon is long: K=4, H=4 is 340 joint actions for one item.
    """

    samples_per_node: int
    """K."""

    def __post_init__(self) -> None:
        check_samples(self.samples_per_node)

    def samples(self, turn: int, acting: Sequence[str]) -> Mapping[str, int]:
        return dict.fromkeys(acting, self.samples_per_node)

    @property
    def group_size(self) -> int:
        return self.samples_per_node
