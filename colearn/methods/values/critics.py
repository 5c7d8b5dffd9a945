"""Value models that are separate from the actors: the rows that they read, and their objective."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan
from typing import Any, ClassVar, Literal

from torch import Tensor

from colearn.config import ResolvedRun
from colearn.contract import (
    Advantage,
    AgentValues,
    Critic,
    Learner,
    NetworkKey,
    Tokenize,
    ValueLoss,
)
from colearn.contract.part_errors import calling_part
from colearn.contract.rows import Outputs, Row, RowBatch
from colearn.contract.types import Tree
from colearn.methods.loss.value import value_loss
from colearn.models.load import read_config
from colearn.training.learners.reader import Reader, Rows, Trees

from .item_means import ItemMeans, Offsets, baselined, scaled

Learns = Callable[[Tree[Any], str], bool]
"""Whether a trained model plays an agent's seat in a tree."""


def anybody(tree: Tree[Any], agent: str) -> bool:
    """Returns True: every seat counts as trained."""
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Critics(Reader):
    """Value models that are separate from the actors. Their input is text in the critic's
    tokenizer. A critic's readers (`Critic.readers`) may share one value model, just as agents may
    share a model."""

    kind: ClassVar[Literal["critic"]] = "critic"
    critic: Critic
    tokenize: Tokenize
    max_length: int
    value_model: Callable[[str], str | None] = str
    """Maps a reader to its value model; None: the reader's values are not read."""

    @classmethod
    def of(
        cls, run: ResolvedRun, learners: Mapping[NetworkKey, Learner], tokenize: Tokenize
    ) -> Critics:
        """The value models of a run that has some; `learners` may include those of actors."""
        settings, critic = run.config.critic, run.parts.critic
        assert critic is not None and settings is not None and settings.path is not None
        return cls(
            critic=critic,
            learners={
                key.model: learner for key, learner in learners.items() if key.kind == "critic"
            },
            tokenize=tokenize,
            max_length=settings.longest_stream(read_config(settings.path, "critic.path")),
            value_model=run.value_models.__getitem__,
        )

    def model_of(self, tree: Tree[Any], reader: str) -> str | None:
        return self.value_model(reader)

    def rows(
        self,
        trees: Trees,
        learns: Learns = anybody,
        baselines: Offsets | None = None,
        *,
        training: bool = True,
    ) -> Rows:
        """Returns the rows of each value model. Includes every reader that has at least one agent
        for which `learns` is true, since opponents and programs have no values. `baselines` are
        added to the network's values. If `training` is False, returns the rows from which
        values are read. These rows may differ from the training rows (`Critic.read_once`)."""
        make = self.critic.training_row if training else self.critic.row
        rows: Rows = {model: {} for model in self.learners}
        for number, tree in enumerate(trees):
            for reader, agents in self.critic.readers(tree.agents).items():
                model = self.value_model(reader)
                trained = tuple(agent for agent in agents if learns(tree, agent))
                if trained and model is not None:
                    with calling_part("algorithm.critic", self.critic):
                        row = make(tree, reader, self.tokenize, limit=self.max_length)
                    if row.marks:
                        row = replace(row, tree=number, reader=reader, agents=trained)
                        if baselines is not None:
                            row = baselined(row, self.critic, tree, trained, baselines[number])
                        rows[model].setdefault(number, []).append(row)
        return rows

    def values(self, trees: Trees, item_means: ItemMeans | None = None) -> list[AgentValues]:
        """Computes the values of every tree with the current weights, without gradient.
        `item_means` are the means of earlier iterations, if they are part of the values."""
        means = None
        if item_means is not None:
            means = [item_means.of_tree(self.critic, tree) for tree in trees]
        rows = self.rows(trees, baselines=means, training=False)
        values = list(self.read(trees, rows, range(len(trees))).values())
        if item_means is None or means is None:
            return values
        return scaled(self.critic, trees, values, means, item_means.shares(self.critic, trees))

    def objective(
        self,
        advantage: Advantage,
        settings: ValueLoss,
        rows: Sequence[Row],
        episodes: Mapping[int, Tree[Any]] | None,
    ) -> CriticObjective | None:
        """Returns the objective of one value model in a minibatch, whose rows are `rows`; None if
        none of its targets is scored, since zero gradients would still apply weight decay and
        momentum. `episodes` maps tree numbers to credited trees; None if the rows already have
        targets."""
        total = self._scored(advantage, rows, episodes)
        if not total:
            return None
        return CriticObjective(settings, total, self.critic, advantage, episodes)

    def _scored(
        self,
        advantage: Advantage,
        rows: Sequence[Row],
        episodes: Mapping[int, Tree[Any]] | None,
    ) -> int:
        """Number of values with a scored target; this does not depend on the values."""
        count = 0
        for row in rows:
            targets: Sequence[float] = row.targets or (0.0,) * len(row.marks)
            if episodes is not None and _has_unscored(episodes[row.tree]):
                episode = episodes[row.tree]
                targets = _targets(self.critic, advantage, episode, row, targets)
            count += sum(not isnan(target) for target in targets)
        return count


def _targets(
    critic: Critic, advantage: Advantage, episode: Tree[Any], row: Row, numbers: Sequence[float]
) -> tuple[float, ...]:
    """Returns the target of each of a row's marks; `numbers` are the value head's outputs."""
    with calling_part("algorithm.critic", critic):
        values = critic.values(episode, row.reader, row, numbers)
    with calling_part("algorithm.advantage", advantage):
        (targets,) = advantage.targets([episode], [values])
    with calling_part("algorithm.critic", critic):
        return critic.numbers(episode, row.reader, row, targets)


def _has_unscored(episode: Tree[Any]) -> bool:
    return any(node.truncated for node in episode.nodes) or any(
        isnan(reward) for rewards in episode.rewards for reward in rewards.values()
    )


def without_states(episode: Tree[Any]) -> Tree[None]:
    """Returns an episode without the task's objects. An update does not read these objects, which
    may not be picklable, so a learner in another process might be unable to receive them."""
    nodes = tuple(replace(node, state=None) for node in episode.nodes)
    return replace(episode, item=None, nodes=nodes)


@dataclass(frozen=True, slots=True)
class CriticObjective:
    """The value loss of a single value model on a single minibatch.

    Rows have targets if the critic was read before the update. Otherwise the targets are computed
    from the detached values of this forward pass (Eq. 3, 5), so that one pass both reads and trains
    the model.
    """

    settings: ValueLoss
    total: int
    """Number of scored values in the minibatch."""
    critic: Critic
    advantage: Advantage
    episodes: Mapping[int, Tree[None]] | None = None
    """The minibatch's episodes by tree number; None if the rows already contain targets."""

    def __call__(self, outputs: Outputs, batch: RowBatch) -> tuple[Tensor, dict[str, float]]:
        old_values = batch.per_action("old_values")
        return value_loss(
            outputs.values,
            self._targets(outputs, batch),
            old_values if len(old_values) else None,
            self.settings,
            self.total,
        )

    def _targets(self, outputs: Outputs, batch: RowBatch) -> Tensor:
        if self.episodes is None:
            return batch.per_action("targets")
        by_row = outputs.values.detach().cpu().split([len(row.marks) for row in batch.rows])
        targets: list[float] = []
        for row, numbers in zip(batch.rows, by_row, strict=True):
            episode = self.episodes[row.tree]
            targets += _targets(self.critic, self.advantage, episode, row, numbers.tolist())
        return outputs.values.new_tensor(targets)
