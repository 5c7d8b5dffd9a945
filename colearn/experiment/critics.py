"""Reading values for trees: the critic's strategy on one side, its value models on the other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor

from colearn.contract import Critic, Learner
from colearn.contract.advantage import Advantage, AgentValues
from colearn.contract.algorithm import ValueLoss
from colearn.contract.rows import Outputs, Row, RowBatch
from colearn.critic.stream import Tokenize, text_stream
from colearn.learn.row import stream_row
from colearn.loss.value import value_loss
from colearn.types import Tree

Trees = Sequence[Tree[Any]]


class ValueReader(ABC):
    """V or Q of every node of every tree, by agent."""

    @abstractmethod
    def read(self, trees: Trees) -> list[AgentValues]:
        """Values under the current critic, without gradient."""


class CriticTrainer(ValueReader):
    """Value models of their own, one learner each, over streams in their own tokenizer."""

    def __init__(
        self,
        critic: Critic,
        learners: Mapping[str, Learner],
        tokenize: Tokenize,
        advantage: Advantage,
        settings: ValueLoss,
        max_length: int,
    ) -> None:
        self.critic, self.learners, self.tokenize = critic, learners, tokenize
        self.advantage, self.settings, self.max_length = advantage, settings, max_length

    def rows(self, trees: Trees, reader: str) -> list[Row]:
        return [
            stream_row(
                tree,
                text_stream(tree, self.critic, reader, self.tokenize),
                key=number,
                limit=self.max_length,
                field_name="critic.max_length",
            )
            for number, tree in enumerate(trees)
        ]

    def read(self, trees: Trees) -> list[AgentValues]:
        found: list[dict[str, Sequence[float | None]]] = [{} for _ in trees]
        for reader, learner in self.learners.items():
            rows = self.rows(trees, reader)
            for number, outputs in enumerate(learner.evaluate([[row] for row in rows])):
                values = outputs[0].values.tolist()
                found[number] |= self._by_agent(trees[number], reader, rows[number], values)
        return list(found)

    def train(
        self, trees: Trees, old: Sequence[AgentValues] | None
    ) -> tuple[list[AgentValues], dict[str, float]]:
        """One forward and backward of every reader; the step is the caller's.

        Gives the values that the targets were made from (Eq. 3, 5: the bootstrap is this very
        critic, detached) and metrics. With frozen targets `old` takes their place.
        """
        found: list[dict[str, Sequence[float | None]]] = [{} for _ in trees]
        metrics: dict[str, float] = {}
        for reader, learner in self.learners.items():
            rows = self.rows(trees, reader)
            total = sum(len(row.marks) for row in rows)
            read: dict[int, list[float]] = {}
            sums = learner.accumulate(
                [[row] for row in rows], self._objective(trees, reader, old, total, read)
            )
            for number, values in learner.share(read).items():
                found[number] |= self._by_agent(trees[number], reader, rows[number], values)
            for key, value in sums.items():
                metrics[key] = metrics.get(key, 0.0) + value / len(self.learners)
        if old is not None and self.settings.frozen_targets:
            return list(old), metrics
        return list(found), metrics

    def _objective(
        self,
        trees: Trees,
        reader: str,
        old: Sequence[AgentValues] | None,
        total: int,
        read: dict[int, list[float]],
    ) -> Callable[[Outputs, RowBatch], tuple[Tensor, dict[str, float]]]:
        agents = self.critic.readers(trees[0].agents)[reader]

        def objective(outputs: Outputs, batch: RowBatch) -> tuple[Tensor, dict[str, float]]:
            parts = outputs.values.detach().cpu().split([len(row.marks) for row in batch.rows])
            targets: list[float] = []
            olds: list[float] = []
            for row, part in zip(batch.rows, parts, strict=True):
                tree = trees[row.key]
                read[row.key] = part.tolist()
                values = self._by_agent(tree, reader, row, read[row.key])
                basis = old[row.key] if old is not None and self.settings.frozen_targets else values
                aims = self.advantage.targets([tree], [basis])[0]
                targets += _at_marks(aims, row, agents)
                if old is not None:
                    olds += _at_marks(old[row.key], row, agents)
            return value_loss(
                outputs.values,
                outputs.values.new_tensor(targets),
                outputs.values.new_tensor(olds) if olds else None,
                self.settings,
                total,
            )

        return objective

    def _by_agent(
        self, tree: Tree[Any], reader: str, row: Row, values: Sequence[float]
    ) -> AgentValues:
        at = {mark.node: value for mark, value in zip(row.marks, values, strict=True)}
        return values_by_agent(tree, self.critic, reader, at)


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
        number = next(v for a in agents if (v := values[a][mark.node]) is not None)
        found.append(number)
    return found
