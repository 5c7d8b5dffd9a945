"""A chain that forks where one agent acts, and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from colearn.contract import Branching

from .aligned import Aligned, Group


@dataclass(frozen=True, kw_only=True)
class ForkOn(Group, Aligned):
    """K actions of `agent` at its `occasion`-th action (from 0), one of everyone else; the K
    branches are chains from there (MHGPO's forks).

    At a fork in simultaneous play the others' one action meets each of the K. Wrong when all agents
    are to learn from one episode: only actions from the fork on have siblings to be compared with.
    """

    agent: str
    occasion: int = 0

    def samples(self, at: Branching) -> Mapping[str, int]:
        counts = dict.fromkeys(at.acting, 1)
        if self.agent in counts and at.acted.get(self.agent, 0) == self.occasion:
            counts[self.agent] = self.k
        return counts
