"""K independent chains from one root, as single-agent GRPO rolls out a prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .aligned import Aligned, check_samples


@dataclass(frozen=True)
class Parallel(Aligned):
    """n K H generations per episode: the branches share the root's history and nothing later.

    Wrong when later turns need a baseline of their own: only the first turn has a group.
    """

    branches: int
    """K: joint actions at the root; every later history has one."""

    def __post_init__(self) -> None:
        check_samples(self.branches)

    def samples(self, turn: int, acting: Sequence[str]) -> Mapping[str, int]:
        return dict.fromkeys(acting, self.branches if turn == 0 else 1)

    @property
    def group_size(self) -> int:
        return self.branches
