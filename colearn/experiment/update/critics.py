"""Builds the rows of value models, reads their values and constructs the objective that trains
them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan
from typing import Any, Literal

from colearn.config import ResolvedRun
from colearn.contract import (
    Advantage,
    AgentValues,
    Critic,
    Learner,
    NetworkKey,
    Parts,
    Tokenize,
    ValueLoss,
    Values,
)
from colearn.contract.rows import Row
from colearn.models.load import read_config
from colearn.types import Tree
from colearn.value_model.item_means import Offsets, baselined

from .objective import CriticObjective, Fit
from .rows import ModelRows, Trees, rows_of

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
        rows: dict[str, ModelRows] = {model: {} for model in self.learners}
        for number, tree in enumerate(trees):
            for reader, agents in self.critic.readers(tree.agents).items():
                trained = tuple(agent for agent in agents if learns(tree, agent))
                if trained:
                    row = make(tree, reader, self.tokenize, limit=self.max_length)
                    if row.marks:
                        row = replace(row, tree=number, reader=reader, agents=trained)
                        if baselines is not None:
                            row = baselined(row, self.critic, tree, trained, baselines[number])
                        rows[self.value_model(reader)].setdefault(number, []).append(row)
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
        for model, model_rows in rows.items():
            flat_rows = rows_of(model_rows, model_rows)
            for row, outputs in zip(
                flat_rows, self.learners[model].evaluate(flat_rows), strict=True
            ):
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
            for number, tree_rows in model_rows.items():
                for place, row in enumerate(tree_rows):
                    numbers = self.critic.numbers(trees[number], row.reader, row, values[number])
                    added: dict[str, Any] = {field: numbers}
                    tree_rows[place] = replace(row, **added)

    def fit(
        self,
        rows: Mapping[str, ModelRows],
        numbers: Sequence[int],
        parts: Parts,
        episodes: Sequence[Tree[Any]] | None,
        fit: Fit,
    ) -> tuple[list[AgentValues] | None, dict[str, float]]:
        """Take one step of every value model on the trees `numbers`, unless none of its targets is
        scored. Returns metrics, and the values before the step, which the training pass reads; a
        value model without a step has a pass of its own, because advantages may be scored.
        `episodes` are the iteration's credited trees; None: the rows already have targets, and no
        values are returned."""
        current = None if episodes is None else {number: episodes[number] for number in numbers}
        values: dict[int, dict[str, Values]] = {number: {} for number in numbers}
        fits: dict[NetworkKey, tuple[Learner, list[Row], CriticObjective]] = {}
        for name, model_rows in rows.items():
            flat_rows = rows_of(model_rows, numbers)
            objective = self.objective(parts.advantage, parts.value_loss, flat_rows, current)
            # zero gradients would still apply weight decay and momentum
            if objective.total:
                fits[NetworkKey("critic", name)] = self.learners[name], flat_rows, objective
            elif current is not None:
                outputs = self.learners[name].evaluate(flat_rows)
                read = {place: part.values.tolist() for place, part in enumerate(outputs)}
                self.collect(flat_rows, read, current, values)
        metrics: dict[str, float] = {}
        for key, (accumulated, stepped) in fit(fits).items():
            if current is not None:
                self.collect(fits[key][1], accumulated.values, current, values)
            for name, value in accumulated.metrics.items():
                total = metrics.get(f"critic/{name}", 0.0)
                metrics[f"critic/{name}"] = total + value / len(fits)
            metrics |= {f"critic/{key.model}/{name}": value for name, value in stepped.items()}
        return None if current is None else list(values.values()), metrics

    def objective(
        self,
        advantage: Advantage,
        settings: ValueLoss,
        rows: Sequence[Row],
        episodes: Mapping[int, Tree[Any]] | None,
    ) -> CriticObjective:
        """Returns the objective of one value model in a minibatch, whose rows are `rows`.
        `episodes` maps tree numbers to credited trees; None if the rows already have targets."""
        total = self._scored(advantage, rows, episodes)
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
                values = self.critic.values(episode, row.reader, row, targets)
                (aims,) = advantage.targets([episode], [values])
                targets = self.critic.numbers(episode, row.reader, row, aims)
            count += sum(not isnan(target) for target in targets)
        return count

    def collect(
        self,
        rows: Sequence[Row],
        by_row: Mapping[int, Sequence[float]],
        episodes: Mapping[int, Tree[Any]],
        values: Mapping[int, dict[str, Values]],
    ) -> None:
        """Add values to `values`, by tree number. `by_row` is `Accumulated.values` from a pass over
        the rows `rows` of one model."""
        for number, numbers in by_row.items():
            row = rows[number]
            tree = episodes[row.tree]
            values[row.tree].update(self.critic.values(tree, row.reader, row, numbers))


def _has_unscored(episode: Tree[Any]) -> bool:
    return any(node.truncated for node in episode.nodes) or any(
        isnan(reward) for rewards in episode.rewards for reward in rewards.values()
    )
