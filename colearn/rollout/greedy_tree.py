"""K candidates at every turn, of which the best goes on (AT-GRPO, Alg. 1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from colearn.contract import Branching, Child

from .aligned import Aligned, Group


@dataclass(frozen=True)
class GreedyTree(Group, Aligned):
    """Every acting agent draws K candidates from one prompt, the environment scores each, and the
    one with the highest credited reward becomes the action; ties are broken by the shape's rng.

    N T K generations for an episode of N agents that act one after the other over T turns, where a
    full tree needs K^(N T). Where several agents act at once a candidate is a joint action, and
    the mean of their rewards decides.

    Wrong when the reward of one action says little of what comes after it: play is greedy, so the
    turns that training sees are those of a better team than the one that is evaluated.
    """

    def samples(self, at: Branching) -> Mapping[str, int]:
        return dict.fromkeys(at.acting, self.k)

    def continues(self, at: Branching, children: Sequence[Child]) -> Sequence[int]:
        worth = [sum(child.rewards[agent] for agent in at.acting) for child in children]
        best = [number for number, found in enumerate(worth) if found == max(worth)]
        return [best[int(at.rng.integers(len(best)))]]
