"""Reads models over packed rows, adds numbers to rows and takes optimiser steps: what actors and
value models have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple

from colearn.contract import (
    Accumulated,
    AgentValues,
    Critic,
    Learner,
    Minibatch,
    NetworkKey,
    Objective,
    Values,
)
from colearn.contract.host import Together, one_by_one
from colearn.contract.part_errors import calling_part
from colearn.contract.rows import Outputs, Row
from colearn.contract.types import Tree

Trees = Sequence[Tree[Any]]
ModelRows = dict[int, list[Row]]
"""The rows of one model, by tree number. A minibatch is a set of trees."""
Rows = dict[str, ModelRows]
"""The rows of several models, by model."""

Evaluate = Callable[[Sequence[Row]], Sequence[Outputs]]
"""A forward pass without gradient; returns one result per row."""


def rows_of(rows: ModelRows, numbers: Iterable[int]) -> list[Row]:
    """The rows of the trees `numbers`."""
    return [row for number in numbers for row in rows.get(number, ())]


class StepResult(NamedTuple):
    """The result of one optimiser step of one model."""

    accumulated: Accumulated
    """The result of the forward and backward passes."""
    stepped: Mapping[str, float]
    """Metrics of the optimiser step."""


Minibatches = dict[NetworkKey, Minibatch]
"""The minibatch of each model that takes a step."""
Steps = Mapping[NetworkKey, StepResult]
"""The steps of one minibatch, by model; empty if no model took a step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader(ABC):
    """Models of one kind, each with one learner. A row belongs to one reader: an agent, whose
    history an actor reads, or a reader of a critic, whose text a value model reads."""

    kind: ClassVar[Literal["actor", "critic"]]
    learners: Mapping[str, Learner]
    """Learner of each trained model."""
    critic: Critic | None = None
    """Converts the value heads' outputs into values; None: the models have no value heads."""

    @abstractmethod
    def model_of(self, tree: Tree[Any], reader: str) -> str | None:
        """The trained model of a reader's rows, if any."""

    def read(
        self, trees: Trees, rows: Rows, numbers: Sequence[int], steps: Steps | None = None
    ) -> dict[int, AgentValues]:
        """Returns the values of the trees `numbers`. They are computed with the current weights,
        without gradient, except for models with a step in `steps` on these trees: the values of
        such a model are those of the training pass, before the step."""
        assert self.critic is not None, "models without value heads have no values"
        values: dict[int, dict[str, Values]] = {number: {} for number in numbers}
        for name, model_rows in rows.items():
            flat_rows = rows_of(model_rows, numbers)
            for row, outputs in self._values(name, flat_rows, steps or {}):
                of_tree = values[row.tree]
                with calling_part("algorithm.critic", self.critic):
                    read = self.critic.values(trees[row.tree], row.reader, row, outputs)
                for agent, series in read.items():
                    of_tree[agent] = _joined(of_tree[agent], series) if agent in of_tree else series
        return dict(values)

    def _values(
        self, name: str, rows: Sequence[Row], steps: Steps
    ) -> Iterator[tuple[Row, Sequence[float]]]:
        """Yields the value head's outputs at the marks of rows."""
        fitted = steps.get(NetworkKey(self.kind, name))
        if fitted is not None:
            yield from ((rows[k], outputs) for k, outputs in fitted.accumulated.values.items())
            return
        for row, outputs in zip(rows, self.learners[name].evaluate(rows), strict=True):
            yield row, outputs.values.tolist()

    def add_values(
        self,
        field: Literal["targets", "old_values"],
        rows: Rows,
        trees: Trees,
        values: Mapping[int, AgentValues],
    ) -> None:
        """Add one number per mark to rows: targets, or values at rollout time. `values` are the
        numbers by tree."""
        assert self.critic is not None, "models without value heads have no values"
        for model_rows in rows.values():
            for number, tree_rows in model_rows.items():
                for place, row in enumerate(tree_rows):
                    tree, by_agent = trees[number], values[number]
                    with calling_part("algorithm.critic", self.critic):
                        numbers = self.critic.numbers(tree, row.reader, row, by_agent)
                    added: dict[str, Any] = {field: numbers}
                    tree_rows[place] = replace(row, **added)

    def add_logprobs(
        self,
        field: Literal["old_logprobs", "ref_logprobs", "teacher_logprobs"],
        rows: Rows,
        evaluate: Mapping[str, Evaluate],
        together: Together = one_by_one,
    ) -> None:
        """Add one log-probability per action token to the rows of the models in `evaluate`, whose
        functions run a model's forward pass. `together` runs the passes of several models."""
        passes = {
            NetworkKey(self.kind, name): partial(forward, rows_of(rows[name], rows[name]))
            for name, forward in evaluate.items()
        }
        for key, outputs in together(passes).items():
            parts = iter(outputs)
            for tree_rows in rows[key.model].values():
                for place, row in enumerate(tree_rows):
                    added: dict[str, Any] = {field: tuple(next(parts).logprobs.tolist())}
                    tree_rows[place] = replace(row, **added)

    def minibatches(
        self,
        rows: Rows,
        numbers: Sequence[int],
        objective: Callable[[Sequence[Row]], Objective | None],
    ) -> Minibatches:
        """Return the minibatch of each model, on its rows of the trees `numbers`. `objective`
        returns the objective of a model's rows; None: the model takes no step."""
        minibatches: Minibatches = {}
        for name, model_rows in rows.items():
            flat_rows = rows_of(model_rows, numbers)
            of_rows = objective(flat_rows)
            if of_rows is not None:
                key = NetworkKey(self.kind, name)
                minibatches[key] = Minibatch(self.learners[name], flat_rows, of_rows)
        return minibatches


def fit(
    minibatches: Minibatches, done: float, *, together: Together = one_by_one
) -> dict[NetworkKey, StepResult]:
    """Take one optimiser step of each model. Models of one `Learner.pass_group` have joint passes.

    done: the used fraction of the training budget.
    """
    groups: dict[Hashable, Minibatches] = {}
    for key, minibatch in minibatches.items():
        groups.setdefault(minibatch.learner.pass_group or key, {})[key] = minibatch

    def step(group: Minibatches) -> dict[NetworkKey, StepResult]:
        first, *others = group.values()
        results = (
            first.learner.accumulate_joint([first, *others])
            if others
            else [first.learner.accumulate(first.rows, first.objective)]
        )
        return {
            key: StepResult(accumulated, minibatch.learner.step(done))
            for (key, minibatch), accumulated in zip(group.items(), results, strict=True)
        }

    stepped = together({next(iter(group)): partial(step, group) for group in groups.values()})
    steps = {key: result for of_group in stepped.values() for key, result in of_group.items()}
    return {key: steps[key] for key in minibatches}


def _joined(first: Values, second: Values) -> Values:
    """Returns the values of an agent whose nodes are in several rows; each node is in one."""
    return tuple(a if b is None else b for a, b in zip(first, second, strict=True))
