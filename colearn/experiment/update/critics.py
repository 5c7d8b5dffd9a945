"""Builds the rows of value models, reads their values and constructs the objective that trains
them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan
from typing import Any, Literal

from colearn.contract import (
    Advantage,
    AgentValues,
    Critic,
    Episodes,
    Learner,
    Prepared,
    Tokenize,
    ValueLoss,
    Values,
)
from colearn.types import Tree
from colearn.value_model.item_means import Offsets, baselined

from .model_rows import ModelRows
from .objective import CriticObjective

Trees = Sequence[Tree[Any]]
Learns = Callable[[Tree[Any], str], bool]
"""Whether a trained model plays an agent's seat in a tree."""


def anybody(tree: Tree[Any], agent: str) -> bool:
    """Returns True: every seat counts as trained."""
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Critics:
    """Holds value models that are separate from the actors; every value model has one learner.
    Their input is text in the critic's tokenizer.

    A critic's readers (`Critic.readers`) may share one value model, just as agents may share a
    model.
    """

    critic: Critic
    learners: Mapping[str, Learner]
    """Learner of each value model."""
    tokenize: Tokenize
    max_length: int
    value_model: Callable[[str], str] = str
    """Maps a reader to its value model."""

    def rows(
        self,
        trees: Trees,
        learns: Learns = anybody,
        baselines: Offsets | None = None,
        *,
        training: bool = True,
    ) -> dict[str, ModelRows]:
        """Returns the rows of each value model. Includes every reader that has at least one agent
        for which `learns` is true, since opponents and programs have no values. `baselines` are
        added to the network's values. If `training` is False, returns the rows from which
        values are read. These rows may differ from the training rows (`Critic.read_once`)."""
        make = self.critic.training_row if training else self.critic.row
        rows = {model: ModelRows(learner) for model, learner in self.learners.items()}
        for number, tree in enumerate(trees):
            for reader, agents in self.critic.readers(tree.agents).items():
                if any(learns(tree, agent) for agent in agents):
                    row = make(tree, reader, self.tokenize, limit=self.max_length)
                    if row.marks:
                        row = replace(row, tree=number, reader=reader)
                        if baselines is not None:
                            row = baselined(row, self.critic, tree, agents, baselines[number])
                        by_tree = rows[self.value_model(reader)].by_tree
                        by_tree.setdefault(number, []).append(row)
        return rows

    def read(
        self,
        trees: Trees,
        learns: Learns = anybody,
        rows: Mapping[str, ModelRows] | None = None,
        baselines: Offsets | None = None,
    ) -> list[AgentValues]:
        """Computes the values of every tree with the current weights, without gradient. `rows` are
        the training rows of these trees, including `baselines`; None: not yet built."""
        if rows is None or self.critic.read_once:
            rows = self.rows(trees, learns, baselines, training=False)
        by_tree: list[dict[str, Values]] = [{} for _ in trees]
        for model_rows in rows.values():
            groups = [[row] for some in model_rows.by_tree.values() for row in some]
            for (row,), (outputs,) in zip(groups, model_rows.learner.evaluate(groups), strict=True):
                numbers = outputs.values.tolist()
                by_tree[row.tree] |= self.critic.values(trees[row.tree], row.reader, row, numbers)
        return list(by_tree)

    def add(
        self,
        field: Literal["targets", "old_values"],
        rows: Mapping[str, ModelRows],
        trees: Trees,
        values: Sequence[AgentValues],
    ) -> None:
        """Add one number per mark to training rows: targets, or values at rollout time."""
        for model_rows in rows.values():
            for number, some in model_rows.by_tree.items():
                for place, row in enumerate(some):
                    numbers = self.critic.numbers(trees[number], row.reader, row, values[number])
                    added: dict[str, Any] = {field: numbers}
                    some[place] = replace(row, **added)

    def objective(
        self,
        advantage: Advantage,
        settings: ValueLoss,
        prepared: Prepared,
        episodes: Mapping[int, Tree[Any]] | None,
    ) -> CriticObjective:
        """Returns the objective of one value model in a minibatch. `episodes` maps tree numbers to
        credited trees; None if the rows already have targets."""
        total = max(1, self._scored(advantage, prepared, episodes))
        return CriticObjective(settings, total, self.critic, advantage, episodes)

    def _scored(
        self,
        advantage: Advantage,
        prepared: Prepared,
        episodes: Mapping[int, Tree[Any]] | None,
    ) -> int:
        """Number of values with a scored target; this does not depend on the values."""
        count = 0
        for row in (row for group in prepared.groups for row in group):
            targets: Sequence[float] = row.targets or (0.0,) * len(row.marks)
            if episodes is not None and _has_unscored(episodes[row.tree]):
                episode = episodes[row.tree]
                values = self.critic.values(episode, row.reader, row, targets)
                (aims,) = advantage.targets([episode], [values])
                targets = self.critic.numbers(episode, row.reader, row, aims)
            count += sum(not isnan(target) for target in targets)
        return count

    def collect(
        self,
        values: Mapping[int, dict[str, Values]],
        prepared: Prepared,
        read: Mapping[tuple[int, int], Sequence[float]],
        episodes: Episodes,
    ) -> None:
        """Add values to `values`, by tree number. `read` is `Accumulated.values` from a pass over
        the rows of one model."""
        for (group, place), numbers in read.items():
            row = prepared.groups[group][place]
            tree = episodes[row.tree]
            by_agent = self.critic.values(tree, row.reader, row, numbers)
            values[row.tree].update(by_agent)


def _has_unscored(episode: Tree[Any]) -> bool:
    return any(isnan(reward) for rewards in episode.rewards for reward in rewards.values())
