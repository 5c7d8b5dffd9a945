"""What the minibatches of an iteration share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from colearn.contract import AgentValues, Episodes, Parts
from colearn.types import Credited
from colearn.value_model.item_means import Offsets

from .actor_rows import ActorRows
from .model_rows import ModelRows


@dataclass(frozen=True, slots=True, kw_only=True)
class Iteration:
    """Credited trees, their rows and all that is read of them once."""

    parts: Parts
    """The parts at this point of the training budget."""
    done: float
    """Used fraction of the training budget, for learning-rate schedules."""
    episodes: Episodes
    """Credited trees, in the order of their numbers."""
    rows: ActorRows
    critic_rows: Mapping[str, ModelRows]
    """By value model; empty without separate value models."""
    item_means: Offsets
    """Means of returns by item and turn, of every tree; empty without a critic."""
    fixed: Mapping[str, ModelRows] | None
    """By actor, rows with the advantages of the whole iteration, if values are read once; None if
    they are read before each minibatch, whose advantages follow."""
    metrics: Mapping[str, float]
    """Statistics of these advantages; empty if there are none."""
    values_read: dict[int, AgentValues] = field(default_factory=dict)
    """By tree number, the values from which its first advantages were computed."""

    def note_values(self, numbers: Sequence[int], values: Sequence[AgentValues]) -> None:
        """Add values of the trees `numbers`, unless they were read before."""
        for number, by_agent in zip(numbers, values, strict=True):
            self.values_read.setdefault(number, by_agent)


def without_states(episode: Credited[Any]) -> Credited[None]:
    """An episode without the task's own objects: an update reads none, and they need not be
    picklable where a learner is in another process."""
    nodes = tuple(replace(node, state=None) for node in episode.tree.nodes)
    return replace(episode, tree=replace(episode.tree, item=None, nodes=nodes))
