"""Computes an iteration's values as item means plus shares of a value model's residuals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from colearn.contract import AgentValues, Critic, Episodes
from colearn.types import Tree
from colearn.value_model.item_means import ItemMeans, Offsets, Shares, scaled


@dataclass(frozen=True, slots=True)
class ItemBaseline:
    """The item means and shares that apply to an iteration's trees (`ItemMeans`).

    Advantages, and targets that are computed at rollout time, use these values. A bootstrapped
    target that is recomputed in each minibatch uses the whole residual instead of a share.
    """

    item_means: ItemMeans
    critic: Critic
    episodes: Episodes
    trees: Sequence[Tree[Any]]
    offsets: Offsets
    shares: Shares
    """Shares that were computed in earlier iterations, so that an episode's return does not affect
    the values of the same episode."""
    _compared: set[int] = field(default_factory=set)

    def values(self, numbers: Sequence[int], read: Sequence[AgentValues]) -> list[AgentValues]:
        """Returns the values of the trees `numbers`. `read` are the value model's values, which
        include the whole residual. The first values that are read for a tree are compared with the
        tree's returns, because no optimiser step on this tree has been taken yet."""
        trees = [self.trees[number] for number in numbers]
        offsets = [self.offsets[number] for number in numbers]
        if self._compared.isdisjoint(numbers):
            episodes = [self.episodes[number] for number in numbers]
            self.item_means.compare(self.critic, episodes, trees, read, offsets)
            self._compared.update(numbers)
        shares = [self.shares[number] for number in numbers]
        return scaled(self.critic, trees, read, offsets, shares)
