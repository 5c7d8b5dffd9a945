"""Reading values for trees: the critic's strategy on one side, its value models on the other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor

from colearn.contract import (
    Advantage,
    AgentValues,
    Critic,
    Episodes,
    Learner,
    TokenValues,
    ValueLoss,
    Values,
)
from colearn.contract.rows import Outputs, Row, RowBatch
from colearn.critic.stream import Tokenize
from colearn.learn.critic_row import critic_row
from colearn.loss.value import value_loss
from colearn.types import Tree

Trees = Sequence[Tree[Any]]


Learns = Callable[[Tree[Any], str], bool]
"""Whether a trained model sat in an agent's seat."""

NOTHING = Row(tokens=(), pieces=())


def anybody(tree: Tree[Any], agent: str) -> bool:
    """In every seat."""
    return True


class ValueReader(ABC):
    """V or Q of every node of every tree, by agent."""

    @abstractmethod
    def read(self, trees: Trees) -> list[AgentValues]:
        """Values under the current critic, without gradient."""


class CriticTrainer(ValueReader):
    """Value models of their own, one learner each, over streams in their own tokenizer.

    Readers map to value models as agents do to models: several may share one.
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
    ) -> None:
        self.critic, self.learners, self.tokenize = critic, learners, tokenize
        self.advantage, self.settings, self.max_length = advantage, settings, max_length
        self.value_model = value_model
        self._packed: dict[tuple[int, str], tuple[Tree[Any], Row]] = {}
        self._last: dict[str, tuple[Trees, list[list[Row]]]] = {}

    def use(self, advantage: Advantage, settings: ValueLoss) -> None:
        """What targets and loss are now, where they follow the budget."""
        self.advantage, self.settings = advantage, settings

    def prepare(self, trees: Trees, learns: Learns = anybody) -> None:
        """Pack the streams of `trees`, which every epoch reads again; forget all others. Where none
        of a reader's agents `learns`, rivals or programs sit in its seats: it reads nothing there,
        and learns nothing of how they fare."""
        self._packed, self._last = {}, {}
        self._packed = {
            (id(tree), reader): (
                tree,
                self._row(tree, reader)
                if any(learns(tree, agent) for agent in agents)
                else NOTHING,
            )
            for tree in trees
            for reader, agents in self.critic.readers(tree.agents).items()
        }

    def freeze(self, episodes: Episodes, old: Sequence[AgentValues]) -> None:
        """Write targets from the values `old` on the streams that `prepare` has packed."""
        self._last = {}
        aims = self.advantage.targets(episodes, old)
        for episode, by_agent, values in zip(episodes, aims, old, strict=True):
            tree = episode.tree
            for reader, agents in self.critic.readers(tree.agents).items():
                row = self._packed[id(tree), reader][1]
                row = replace(
                    row,
                    targets=tuple(_at_marks(by_agent, row, agents)),
                    old_values=tuple(_at_marks(values, row, agents)),
                )
                self._packed[id(tree), reader] = (tree, row)

    def rows(self, trees: Trees, model: str) -> list[Row]:
        """The streams of all readers of a value model; their keys are read by `_place`."""
        return [
            replace(row, key=place * len(trees) + number)
            for place, reader in enumerate(self._readers(trees[0], model))
            for number, tree in enumerate(trees)
            if (row := self._row(tree, reader)).marks
        ]

    def _groups(self, trees: Trees, model: str) -> list[list[Row]]:
        """The rows one by one; for the trees of the last call the same list, by which a learner
        knows what it has prepared."""
        before, groups = self._last.get(model, ((), []))
        if len(before) != len(trees) or any(a is not b for a, b in zip(before, trees, strict=True)):
            groups = [[row] for row in self.rows(trees, model)]
            self._last[model] = tuple(trees), groups
        return groups

    def _row(self, tree: Tree[Any], reader: str) -> Row:
        if (id(tree), reader) in self._packed:
            return self._packed[id(tree), reader][1]
        return critic_row(tree, self.critic, reader, self.tokenize, limit=self.max_length)

    def read(self, trees: Trees) -> list[AgentValues]:
        found: list[dict[str, Values]] = [{} for _ in trees]
        for model, learner in self.learners.items():
            rows = self.rows(trees, model)
            for row, outputs in zip(rows, learner.evaluate([[row] for row in rows]), strict=True):
                reader, number = self._place(trees, model, row.key)
                values = outputs[0].values.tolist()
                found[number] |= self._by_agent(trees[number], reader, row, values)
        return list(found)

    def train(
        self, episodes: Episodes, old: Sequence[AgentValues] | None
    ) -> tuple[list[AgentValues], dict[str, float]]:
        """One forward and backward of every value model; the step is the caller's.

        Gives the values that the targets were made from (Eq. 3, 5: the bootstrap is this very
        critic, detached) and metrics. Streams that `freeze` has written targets on keep those, and
        the values are `old`.
        """
        trees = [episode.tree for episode in episodes]
        found: list[dict[str, Values]] = [{} for _ in trees]
        metrics: dict[str, float] = {}
        for model, learner in self.learners.items():
            groups = self._groups(trees, model)
            by_key = {row.key: row for (row,) in groups}
            total = sum(len(row.marks) for (row,) in groups)
            read: dict[int, list[float]] = {}
            objective = self._objective(episodes, model, old, total, read)
            sums = learner.accumulate(groups, objective)
            for key, values in learner.share(read).items():
                reader, number = self._place(trees, model, key)
                found[number] |= self._by_agent(trees[number], reader, by_key[key], values)
            for name, value in sums.items():
                metrics[name] = metrics.get(name, 0.0) + value / len(self.learners)
        if old is not None and self.settings.frozen_targets:
            return list(old), metrics
        return list(found), metrics

    def _objective(
        self,
        episodes: Episodes,
        model: str,
        old: Sequence[AgentValues] | None,
        total: int,
        read: dict[int, list[float]],
    ) -> Callable[[Outputs, RowBatch], tuple[Tensor, dict[str, float]]]:
        trees = [episode.tree for episode in episodes]

        def objective(outputs: Outputs, batch: RowBatch) -> tuple[Tensor, dict[str, float]]:
            parts = outputs.values.detach().cpu().split([len(row.marks) for row in batch.rows])
            targets: list[float] = []
            olds: list[float] = []
            for row, part in zip(batch.rows, parts, strict=True):
                if row.targets:
                    targets += row.targets
                    olds += row.old_values
                    continue
                reader, number = self._place(trees, model, row.key)
                agents = self.critic.readers(trees[number].agents)[reader]
                read[row.key] = part.tolist()
                basis = self._by_agent(trees[number], reader, row, read[row.key])
                aims = self.advantage.targets([episodes[number]], [basis])[0]
                targets += _at_marks(aims, row, agents)
                if old is not None:
                    olds += _at_marks(old[number], row, agents)
            return value_loss(
                outputs.values,
                outputs.values.new_tensor(targets),
                outputs.values.new_tensor(olds) if olds else None,
                self.settings,
                total,
            )

        return objective

    def _readers(self, tree: Tree[Any], model: str) -> list[str]:
        return [r for r in self.critic.readers(tree.agents) if self.value_model(r) == model]

    def _place(self, trees: Trees, model: str, key: int) -> tuple[str, int]:
        """The reader and the tree's number that a row's key stands for."""
        place, number = divmod(key, len(trees))
        return self._readers(trees[0], model)[place], number

    def _by_agent(
        self, tree: Tree[Any], reader: str, row: Row, values: Sequence[float]
    ) -> AgentValues:
        read = list(zip(row.marks, values, strict=True))
        at = {mark.node: value for mark, value in read if mark.inside is None}
        if self.critic.value != "token":
            return values_by_agent(tree, self.critic, reader, at)
        inside: list[list[float]] = [[] for _ in tree.nodes]
        for mark, value in read:
            if mark.inside is not None:
                inside[mark.node].append(value)
        seen = tuple(at.get(node.index) for node in tree.nodes)
        own = TokenValues(seen, tuple(map(tuple, inside)))
        return dict.fromkeys(self.critic.readers(tree.agents)[reader], own)


def values_by_agent(
    tree: Tree[Any], critic: Critic, reader: str, at: Mapping[int, float]
) -> AgentValues:
    """A reader's values as the values of the agents it stands for, at every node it reads.

    A central critic gives V(h_t) to agents that do not act at turn t, too: its bootstrap is the
    next joint history, whoever acts there (Eq. 4).
    """
    series = tuple(at.get(node.index) for node in tree.nodes)
    return dict.fromkeys(critic.readers(tree.agents)[reader], series)


def _at_marks(values: AgentValues, row: Row, agents: Sequence[str]) -> list[float]:
    """One number for each mark: that of the first agent who has one there."""
    found = []
    for mark in row.marks:
        if mark.inside is None:
            found.append(next(v for a in agents if (v := values[a][mark.node]) is not None))
        else:
            own = values[agents[0]]
            assert isinstance(own, TokenValues), "marks inside of actions are of tokens"
            found.append(own.inside[mark.node][mark.inside])
    return found
