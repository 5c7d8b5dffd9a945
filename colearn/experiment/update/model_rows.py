"""Data shared by the minibatches of an iteration: the rows of every model, and what is computed
once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from colearn.contract import AgentValues, Episodes, Learner, Parts, Prepared
from colearn.contract.rows import Row
from colearn.types import Tree
from colearn.value_model.item_means import Offsets

from .item_baseline import ItemBaseline


@dataclass(slots=True)
class ModelRows:
    """The rows of an actor or of a value model, by tree number. A minibatch is a set of trees."""

    learner: Learner
    by_tree: dict[int, list[Row]] = field(default_factory=dict)
    _last: tuple[Sequence[int], Prepared] | None = None

    def prepared(self, numbers: Sequence[int]) -> Prepared:
        """Returns the rows of the trees `numbers`, divided into micro-batches by the learner. A
        call with the same trees as the previous call reuses the micro-batches."""
        if self._last is None or self._last[0] != numbers:
            groups = [[row] for number in numbers for row in self.by_tree.get(number, ())]
            self._last = numbers, self.learner.prepare(groups)
        return self._last[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Iteration:
    """Credited trees, their training rows, and all quantities that are computed once per
    iteration."""

    parts: Parts
    """The algorithm's parts at this point of the training budget."""
    done: float
    """Used fraction of the training budget, for learning-rate schedules."""
    episodes: Episodes
    """Credited trees, in the order of their numbers."""
    actor_rows: Mapping[str, ModelRows]
    """Rows of each trained model."""
    critic_rows: Mapping[str, ModelRows]
    """Rows of each value model; empty without separate value models."""
    item_means: Offsets
    """Mean returns by item and turn, for every tree; empty without a critic."""
    baseline: ItemBaseline | None
    """The item means and shares that are part of the values; None if values come only from the
    network."""
    fixed: Mapping[str, ModelRows] | None
    """`actor_rows` with advantages that are computed once for the whole iteration. None if
    values are read, and advantages computed, before each minibatch."""
    metrics: Mapping[str, float]
    """Statistics of the advantages in `fixed`; empty if `fixed` is None."""
    values_read: dict[int, AgentValues] = field(default_factory=dict)
    """For each tree number, the values from which the tree's first advantages were computed."""

    def note_values(self, numbers: Sequence[int], values: Sequence[AgentValues]) -> None:
        """Add the values of the trees `numbers`, except for trees that already have values."""
        for number, by_agent in zip(numbers, values, strict=True):
            self.values_read.setdefault(number, by_agent)


def without_states(episode: Tree[Any]) -> Tree[None]:
    """Returns an episode without the task's objects. An update does not read these objects, which
    may not be picklable, so a learner in another process might be unable to receive them."""
    nodes = tuple(replace(node, state=None) for node in episode.nodes)
    return replace(episode, item=None, nodes=nodes)
