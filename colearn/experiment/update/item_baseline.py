"""Values of an iteration that are item means plus shares of a value model's residuals."""

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

    Advantages, and targets that are computed from them at rollout time, use these values. A
    bootstrapped target that is recomputed in each minibatch has the whole residual.
    """

    item_means: ItemMeans
    critic: Critic
    episodes: Episodes
    trees: Sequence[Tree[Any]]
    offsets: Offsets
    shares: Shares
    """Shares from earlier iterations, so that no episode's own return affects its values."""
    _compared: set[int] = field(default_factory=set)

    def values(self, numbers: Sequence[int], read: Sequence[AgentValues]) -> list[AgentValues]:
        """Returns the values of the trees `numbers`, given the values that the value model has
        `read`, which include the whole residual. The first values of a tree are compared with its
        returns: no step was taken on this tree yet."""
        trees = [self.trees[number] for number in numbers]
        offsets = [self.offsets[number] for number in numbers]
        if self._compared.isdisjoint(numbers):
            episodes = [self.episodes[number] for number in numbers]
            self.item_means.compare(self.critic, episodes, trees, read, offsets)
            self._compared.update(numbers)
        shares = [self.shares[number] for number in numbers]
        return scaled(self.critic, trees, read, offsets, shares)
