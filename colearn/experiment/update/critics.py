"""Critic training and value predictions: runs the value models on the critic's rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from colearn.contract import (
    Accumulated,
    Advantage,
    AgentValues,
    Critic,
    Episodes,
    Learner,
    NetworkKey,
    Prepared,
    Tokenize,
    ValueLoss,
    Values,
)
from colearn.contract.host import Together, one_by_one
from colearn.contract.rows import Row
from colearn.types import Credited, Tree

from .critic_objective import CriticObjective, bare

Trees = Sequence[Tree[Any]]


Learns = Callable[[Tree[Any], str], bool]
"""Whether a trained model plays an agent's seat in a tree."""

NOTHING = Row(tokens=(), pieces=())


def anybody(tree: Tree[Any], agent: str) -> bool:
    """Counts every seat as trained."""
    return True


class ValueReader(ABC):
    """Reads V or Q of every node of every tree, by agent."""

    @abstractmethod
    def read(self, trees: Trees) -> list[AgentValues]:
        """Values of the current critic, without gradient."""


class CriticTrainer(ValueReader):
    """Separate value models, one learner each, over streams in their own tokenizer.

    Several readers may share one value model, as agents share models.
    """

    def __init__(
        self,
        critic: Critic,
        learners: Mapping[str, Learner],
        tokenize: Tokenize,
        advantage: Advantage,
        settings: ValueLoss,
        max_length: int,
        value_model: Callable[[str], str] = str,
        together: Together = one_by_one,
    ) -> None:
        self.critic, self.learners, self.tokenize = critic, learners, tokenize
        self.advantage, self.settings, self.max_length = advantage, settings, max_length
        self.value_model, self.together = value_model, together
        self._packed: dict[tuple[int, str], tuple[Tree[Any], Row]] = {}
        self._last: dict[str, tuple[Trees, Prepared]] = {}
        self._shapes: dict[int, tuple[Tree[Any], Tree[None]]] = {}

    def use(self, advantage: Advantage, settings: ValueLoss) -> None:
        """Set the advantage and value loss for this point of the training budget."""
        self.advantage, self.settings = advantage, settings

    def prepare(self, trees: Trees, learns: Learns = anybody) -> None:
        """Pack the streams of `trees` once for all epochs, and discard those of earlier trees. A
        reader none of whose agents `learns` (opponents and programs) is left out."""
        self._packed, self._last = {}, {}
        self._shapes = {id(tree): (tree, bare(tree)) for tree in trees}
        self._packed = {
            (id(tree), reader): (
                tree,
                self.critic.training_row(tree, reader, self.tokenize, limit=self.max_length)
                if any(learns(tree, agent) for agent in agents)
                else NOTHING,
            )
            for tree in trees
            for reader, agents in self.critic.readers(tree.agents).items()
        }

    def freeze(self, episodes: Episodes, old: Sequence[AgentValues]) -> None:
        """Attach targets, computed from the values `old`, to the packed rows."""
        self._last = {}
        aims = self.advantage.targets(episodes, old)
        for episode, aim, values in zip(episodes, aims, old, strict=True):
            tree = episode.tree
            for reader in self.critic.readers(tree.agents):
                row = self._packed[id(tree), reader][1]
                row = replace(
                    row,
                    targets=self.critic.numbers(tree, reader, row, aim),
                    old_values=self.critic.numbers(tree, reader, row, values),
                )
                self._packed[id(tree), reader] = (tree, row)

    def rows(self, trees: Trees, model: str, *, training: bool = True) -> list[Row]:
        """The rows of all readers of a value model; `_place` decodes their keys."""
        return [
            replace(row, key=place * len(trees) + number)
            for place, reader in enumerate(self._readers(trees[0], model))
            for number, tree in enumerate(trees)
            if (row := self._row(tree, reader, training)).marks
        ]

    def _cut(self, trees: Trees, model: str) -> Prepared:
        """The rows, one per group, cut by the learner; cached for the last trees."""
        before, prepared = self._last.get(model, ((), None))
        alike = len(before) == len(trees) and all(
            a is b for a, b in zip(before, trees, strict=True)
        )
        if prepared is None or not alike:
            prepared = self.learners[model].prepare([[row] for row in self.rows(trees, model)])
            self._last[model] = tuple(trees), prepared
        return prepared

    def _row(self, tree: Tree[Any], reader: str, training: bool) -> Row:
        packed = self._packed.get((id(tree), reader))
        if packed is not None and (training or packed[1] is NOTHING or not self.critic.read_once):
            return packed[1]
        make = self.critic.training_row if training else self.critic.row
        return make(tree, reader, self.tokenize, limit=self.max_length)

    def read(self, trees: Trees) -> list[AgentValues]:
        by_tree: list[dict[str, Values]] = [{} for _ in trees]
        for model, learner in self.learners.items():
            rows = self.rows(trees, model, training=False)
            for row, outputs in zip(rows, learner.evaluate([[row] for row in rows]), strict=True):
                reader, number = self._place(trees, model, row.key)
                values = outputs[0].values.tolist()
                by_tree[number] |= self.critic.values(trees[number], reader, row, values)
        return list(by_tree)

    def train(
        self, episodes: Episodes, old: Sequence[AgentValues] | None
    ) -> tuple[list[AgentValues], dict[str, float]]:
        """Forward and backward of every value model; the caller makes the step.

        Returns the values from which the targets were computed (Eq. 3, 5: the bootstrap is the
        current critic, detached), and metrics. Rows with frozen targets keep them; the values are
        then `old`.
        """
        trees = [episode.tree for episode in episodes]
        fixed = old if self.settings.frozen_targets else None
        by_tree: list[dict[str, Values]] = [{} for _ in trees]
        metrics: dict[str, float] = {}
        passes: dict[NetworkKey, Callable[[], Accumulated]] = {}
        for model, learner in self.learners.items():
            prepared = self._cut(trees, model)
            written = all(row.targets for (row,) in prepared.groups)
            objective = CriticObjective(
                critic=self.critic,
                advantage=self.advantage,
                settings=self.settings,
                readers=tuple(self._readers(trees[0], model)),
                episodes=() if written else tuple(map(self._bare, episodes)),
                old=None if old is None else tuple(old),
                total=sum(len(row.marks) for (row,) in prepared.groups),
            )
            passes[NetworkKey("critic", model)] = partial(learner.accumulate, prepared, objective)
        for key, accumulated in self.together(passes).items():
            prepared = self._cut(trees, key.model)
            for (group, _), values in accumulated.values.items() if fixed is None else ():
                (row,) = prepared.groups[group]
                reader, number = self._place(trees, key.model, row.key)
                by_tree[number] |= self.critic.values(trees[number], reader, row, values)
            for name, value in accumulated.metrics.items():
                metrics[name] = metrics.get(name, 0.0) + value / len(self.learners)
        return (list(by_tree) if fixed is None else list(fixed)), metrics

    def _bare(self, episode: Credited[Any]) -> Credited[None]:
        key = id(episode.tree)
        tree = self._shapes[key][1] if key in self._shapes else bare(episode.tree)
        return Credited(tree=tree, rewards=episode.rewards, discount=episode.discount)

    def _readers(self, tree: Tree[Any], model: str) -> list[str]:
        return [r for r in self.critic.readers(tree.agents) if self.value_model(r) == model]

    def _place(self, trees: Trees, model: str, key: int) -> tuple[str, int]:
        """The reader and the tree number encoded in a row's key."""
        place, number = divmod(key, len(trees))
        return self._readers(trees[0], model)[place], number
