"""Builds the rows of the trained policies, adds log-probabilities and advantages to the rows, and
reads values with value heads on the policies."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from colearn.agents import AgentSpec
from colearn.contract import (
    AgentValues,
    Episodes,
    FrozenCopy,
    Learner,
    NetworkKey,
    Parts,
    ReadAt,
    Values,
)
from colearn.contract.host import Together, one_by_one
from colearn.contract.rows import Outputs, Row
from colearn.learn.packed_rows import actor_rows
from colearn.types import Tree

from .action_weights import equal_groups
from .diagnostics import advantage_metrics
from .objective import ActorObjective, Fit
from .rows import ModelRows, Trees, at_marks, rows_of, with_advantages


@dataclass(frozen=True, slots=True, kw_only=True)
class Actors:
    """Holds the trained policies; every trained model has one learner. Their input is the agents'
    histories as token ids. The reader of a row is the agent whose history it holds."""

    specs: Mapping[str, AgentSpec]
    """Specs by player; an episode's cast maps agents to players."""
    learners: Mapping[str, Learner]
    """Learner of each trained model."""
    value: ReadAt | None = None
    """Position in a turn at which value heads on the models are read; None: no such heads."""

    def rows(self, trees: Trees, token_budget: int, done: float) -> dict[str, ModelRows]:
        """Returns the rows of each model. `done` is the fraction of the budget that had been used
        when the trees were sampled."""
        rows: dict[str, ModelRows] = {name: {} for name in self.learners}
        for number, tree in enumerate(trees):
            for agent in tree.agents:
                spec = self._spec_of(tree, agent)
                if spec is None or spec.model is None:
                    continue
                agent_rows = actor_rows(
                    tree,
                    agent,
                    number=number,
                    window=spec.window,
                    temperature=spec.temperature_at(done),
                    budget=None if self.value else token_budget,
                    value=self.value,
                )
                # an agent that never acted has a row without a token, which no model can read
                of_tree = rows[spec.model].setdefault(number, [])
                of_tree += [row for row in agent_rows if row.spans or row.marks]
        return rows

    def add_old_logprobs(
        self,
        rows: Mapping[str, ModelRows],
        models: Collection[str],
        together: Together = one_by_one,
    ) -> None:
        """Add old log-probabilities, computed with the current weights, to the rows of `models`,
        which are models that take several optimiser steps. `together` runs the passes of several
        models."""
        passes = {
            NetworkKey("actor", name): partial(
                self.learners[name].evaluate, rows_of(model_rows, model_rows)
            )
            for name, model_rows in rows.items()
            if name in models
        }
        for key, outputs in together(passes).items() if passes else ():
            _add_logprobs("old_logprobs", rows[key.model], outputs)

    def add_reference_logprobs(
        self, rows: Mapping[str, ModelRows], references: Mapping[str, FrozenCopy]
    ) -> None:
        """Add the reference policies' log-probabilities. A model without an entry in `references`
        is an adapter, whose reference is its base model."""
        for name, model_rows in rows.items():
            unmarked = [replace(row, marks=()) for row in rows_of(model_rows, model_rows)]
            outputs = (
                references[name].evaluate(unmarked)
                if name in references
                else self.learners[name].evaluate(unmarked, reference=True)
            )
            _add_logprobs("ref_logprobs", model_rows, outputs)

    def add_old_values(self, rows: Mapping[str, ModelRows], values: Sequence[AgentValues]) -> None:
        """Add the values at rollout time to the marks of rows."""
        for model_rows in rows.values():
            for number, tree_rows in model_rows.items():
                for place, row in enumerate(tree_rows):
                    numbers = at_marks(row, values[number][row.reader])
                    tree_rows[place] = replace(row, old_values=numbers)

    def read(
        self, trees: Trees, rows: Mapping[str, ModelRows], numbers: Sequence[int]
    ) -> list[AgentValues]:
        """Computes the values of the trees `numbers` with the value heads on the models, without
        gradient."""
        series: dict[tuple[int, str], list[float | None]] = {}
        for name, model_rows in rows.items():
            for number in numbers:
                for agent in trees[number].agents:
                    if self.model(trees[number], agent) == name:
                        series[number, agent] = [None] * len(trees[number].nodes)
            flat_rows = rows_of(model_rows, numbers)
            for row, part in zip(flat_rows, self.learners[name].evaluate(flat_rows), strict=True):
                for mark, value in zip(row.marks, part.values.tolist(), strict=True):
                    series[row.tree, row.reader][mark.node] = value
        values: dict[int, dict[str, Values]] = {number: {} for number in numbers}
        for (number, agent), of_nodes in series.items():
            values[number][agent] = tuple(of_nodes)
        return list(values.values())

    def with_advantages(
        self,
        rows: Mapping[str, ModelRows],
        parts: Parts,
        episodes: Episodes,
        numbers: Sequence[int],
        values: Sequence[AgentValues] | None,
    ) -> tuple[dict[str, ModelRows], dict[str, float]]:
        """Returns the rows of each model for the trees `numbers`, and statistics of the advantages.
        The rows include advantages, computed from `values`. `parts` are the algorithm's parts at
        this point of the training budget."""
        batch = [episodes[number] for number in numbers]
        advantages = equal_groups(
            parts.advantage(batch, values), parts.advantage, batch, self.model
        )
        targets = None
        if self.value is not None and values is not None:
            targets = parts.advantage.targets(batch, values)
        by_model: dict[str, ModelRows] = {name: {} for name in rows}
        for name, model_rows in rows.items():
            for place, number in enumerate(numbers):
                aims = None if targets is None else targets[place]
                tree_rows = (
                    with_advantages(row, advantages[place], aims)
                    for row in model_rows.get(number, ())
                )
                by_model[name][number] = [row for row in tree_rows if row.spans or row.marks]
        of_state = parts.critic is not None and parts.critic.of_state
        metrics = advantage_metrics(advantages, batch, values, of_state=of_state)
        return by_model, metrics

    def fit(
        self,
        learners: Mapping[str, Learner],
        rows: Mapping[str, ModelRows],
        numbers: Sequence[int],
        parts: Parts,
        fit: Fit,
    ) -> dict[str, float]:
        """Take one step of each model in `learners` on its rows of the trees `numbers`, which
        contain advantages. Returns the metrics by model; a model takes no step if none of its
        actions has an advantage."""
        fits: dict[NetworkKey, tuple[Learner, list[Row], ActorObjective]] = {}
        for name, learner in learners.items():
            if flat_rows := rows_of(rows[name], numbers):
                objective = ActorObjective.of(parts.loss, parts.value_loss, flat_rows)
                fits[NetworkKey("actor", name)] = learner, flat_rows, objective
        return {
            f"{key.model}/{name}": value
            for key, (accumulated, stepped) in fit(fits).items()
            for name, value in (*accumulated.metrics.items(), *stepped.items())
        }

    def model(self, tree: Tree[Any], agent: str) -> str | None:
        """The trained model in an agent's seat; None for other players."""
        spec = self._spec_of(tree, agent)
        return None if spec is None else spec.model

    def learns(self, tree: Tree[Any], agent: str) -> bool:
        """Whether a trained model plays an agent's seat."""
        return self._spec_of(tree, agent) is not None

    def _spec_of(self, tree: Tree[Any], agent: str) -> AgentSpec | None:
        spec = self.specs.get(tree.player(agent))
        return spec if spec is not None and spec.model in self.learners else None


def _add_logprobs(
    field: Literal["old_logprobs", "ref_logprobs"],
    rows: ModelRows,
    outputs: Sequence[Outputs],
) -> None:
    """Add one number per action token to all rows of a model; `outputs` are those of `rows_of`."""
    parts = iter(outputs)
    for tree_rows in rows.values():
        for place, row in enumerate(tree_rows):
            added: dict[str, Any] = {field: tuple(next(parts).logprobs.tolist())}
            tree_rows[place] = replace(row, **added)
