"""K independent chains from one root, as single-agent GRPO rolls out a prompt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from colearn.contract import Branching

from .aligned import Aligned, Group


@dataclass(frozen=True)
class Parallel(Group, Aligned):
    """n K H generations per episode: the K branches share the root's history and nothing later.

    Wrong when later turns need a baseline of their own: only the first turn has a group.
    """

    def samples(self, at: Branching) -> Mapping[str, int]:
        return dict.fromkeys(at.acting, self.k if at.turn == 0 else 1)
