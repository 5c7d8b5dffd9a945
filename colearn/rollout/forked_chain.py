"""A chain that forks, once it has ended, at the nodes where a critic was surprised most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from colearn.contract.types import Node
from colearn.errors import ConfigError

from .shapes import Aligned, Group


@dataclass(frozen=True, kw_only=True)
class ForkedChain(Group, Aligned):
    """Plays a chain to its end, then draws K - 1 further joint actions at some of its nodes. Each
    further branch continues as a chain.

    With `where: surprise`, the nodes are those of the largest |delta|, the critic's TD error at the
    chain's own joint action:

        s(h_t) = max over agents i of |r_{i,t} + gamma V_i(h_{t+1}) - V_i(h_t)|, V = 0 at the end

    s is one sample of the spread of what follows a joint history. E[s^2 | h_t] is, for one V, the
    variance of r + gamma V(h_{t+1}) over joint actions and transitions, plus the squared error of
    V(h_t). The critic is read once per iteration, when all chains have ended. A node at which only
    programs act is not forked.

    In a chain of T joint actions, a fork at turn t costs (K - 1) (T - t) joint actions if its
    branches are as long as the chain. Nodes are taken in the order of s, and a node whose cost
    exceeds what is left of `budget` is skipped, so a budget below (K - 1) T never forks the first
    turn. Branches may be longer or shorter than the chain.

    At a forked node, the chain's joint action was chosen for its surprise, so the mean return over
    the K children is not an unbiased estimate of V(h). With the chain's return G_0 and whether the
    node is forked, F in {0, 1}:

        E[mean] - V(h) = -(K - 1) / K * E[F (G_0 - V(h))]

    This is 0 if forked chains lie above V(h) as often and as far as below, and with `where: random`
    if all chains are equally long.

    Wrong with `where: surprise` when a rare large reward decides: the returns of the nodes before
    it are then too low. Wrong when the critic is untrained: s is then the size of the rewards.
    Wrong when transitions are random: s is then large where luck decides, not an action. Wrong in
    episodes of one turn: use `Parallel`.
    """

    k: Annotated[int, Field(ge=2, le=1024, description="4 is usual")] = 4
    """K, the number of joint actions at a forked node, including the chain's own."""
    budget: Annotated[int, Field(ge=1, le=2**16, description="8 is usual")] = 8
    """Maximum number of further joint actions of one tree; a branch counts as if it were as long as
    the chain."""
    where: Literal["surprise", "random"] = "surprise"
    """Order in which nodes are taken: by the critic's surprise, or at random (for comparison)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.budget < self.k - 1:
            raise ConfigError(
                f"budget: {self.budget} joint actions hold no fork, which has k - 1 = "
                f"{self.k - 1} or more; raise it, or lower k"
            )

    @property
    def reads_critic(self) -> bool:
        return self.where == "surprise"

    def samples(self, at: Node[Any]) -> Mapping[str, int]:
        return dict.fromkeys(at.acting, 1)

    def further(
        self,
        visited: Sequence[Node[Any]],
        unsure: Sequence[float | None],
        rng: np.random.Generator,
    ) -> Mapping[int, Mapping[str, int]]:
        chosen, budget = list[int](), self.budget
        for place in self._order(unsure, rng):
            cost = (self.k - 1) * (len(visited) - place)
            if cost <= budget and not _only_programs(visited[place]):
                chosen.append(place)
                budget -= cost
        return {place: visited[place].candidates(self.k - 1) for place in sorted(chosen)}

    def _order(self, unsure: Sequence[float | None], rng: np.random.Generator) -> Sequence[int]:
        """Return the nodes in the order in which they are taken; equal surprises in order of
        turns."""
        if self.where == "random":
            return [int(place) for place in rng.permutation(len(unsure))]
        measured = {
            place: surprise for place, surprise in enumerate(unsure) if surprise is not None
        }
        return sorted(measured, key=lambda place: -measured[place])


def _only_programs(at: Node[Any]) -> bool:
    """Whether only programs act at a node, whose further actions would equal the first."""
    return set(at.acting) <= at.programs
