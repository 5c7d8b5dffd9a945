"""Training rows of the actors: tokens, log-probabilities, advantages, value targets."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
    Values,
)
from colearn.contract.host import Together, one_by_one
from colearn.contract.rows import Outputs, Row
from colearn.learn.packed_rows import actor_rows
from colearn.types import Tree

from .action_weights import equal_groups
from .diagnostics import advantage_metrics
from .model_rows import ModelRows
from .objective import at_marks, with_advantages, with_logprobs

Trees = Sequence[Tree[Any]]


@dataclass(frozen=True, slots=True)
class ActorRows:
    """Training rows of all trained agents, by tree number and agent."""

    trees: Trees
    parts: Parts
    specs: Mapping[str, AgentSpec]
    actors: Mapping[str, Learner]
    shared_head: bool
    rows: dict[tuple[int, str], list[Row]] = field(default_factory=dict)

    def build(self, token_budget: int, done: float) -> None:
        """Build the rows of the trees. `done` is the fraction of the budget that had been used when
        the trees were sampled."""
        head = self.parts.critic.on_actor if self.parts.critic and self.shared_head else None
        for agent in self.trees[0].agents:
            for number, tree in enumerate(self.trees):
                spec = self._spec_of(tree, agent)
                if spec is None:
                    continue
                rows = actor_rows(
                    tree,
                    agent,
                    number=number,
                    window=spec.window,
                    temperature=spec.temperature_at(done),
                    budget=None if self.shared_head else token_budget,
                    value=head,
                )
                # an agent that never acted has a row without a token, which no model can read
                self.rows[number, agent] = [row for row in rows if row.spans or row.marks]

    def add_old_logprobs(self, models: Collection[str], together: Together = one_by_one) -> None:
        """Add old log-probabilities, computed with the current weights, to the rows of `models`,
        which are models that take several optimiser steps. `together` runs the passes of several
        models."""
        passes = {
            NetworkKey("actor", name): partial(self.actors[name].evaluate, self._groups(name))
            for name in self.actors
            if name in models
        }
        for key, outputs in together(passes).items() if passes else ():
            self._attach(key.model, "old", outputs)

    def add_reference_logprobs(self, references: Mapping[str, FrozenCopy]) -> None:
        """Add the reference policies' log-probabilities. A model without an entry in `references`
        is an adapter, whose reference is its base model."""
        for name, learner in self.actors.items():
            groups = [[replace(row, marks=()) for row in group] for group in self._groups(name)]
            outputs = (
                references[name].evaluate(groups)
                if name in references
                else learner.evaluate(groups, reference=True)
            )
            self._attach(name, "ref", outputs)

    def add_old_values(self, values: Sequence[AgentValues]) -> None:
        """Add the values at rollout time to rows with marks."""
        for (number, agent), rows in self.rows.items():
            self.rows[number, agent] = [
                replace(row, old_values=at_marks(row, values[number][agent])) for row in rows
            ]

    def model(self, tree: Tree[Any], agent: str) -> str | None:
        """The trained model in an agent's seat; None for other players."""
        spec = self._spec_of(tree, agent)
        return None if spec is None else spec.model

    def learns(self, tree: Tree[Any], agent: str) -> bool:
        """Whether a trained model plays an agent's seat."""
        return self._spec_of(tree, agent) is not None

    def read_values(self, numbers: Sequence[int]) -> list[AgentValues]:
        """Compute the values of the trees `numbers` with the value heads on the trained actors,
        without gradient."""
        values: dict[int, dict[str, Values]] = {number: {} for number in numbers}
        for name, learner in self.actors.items():
            agents = self.trees[0].agents
            keys = [(n, a) for a in agents for n in numbers if self._plays(name, n, a)]
            outputs = learner.evaluate([self.rows[key] for key in keys])
            for (number, agent), group in zip(keys, outputs, strict=True):
                series: list[float | None] = [None] * len(self.trees[number].nodes)
                for row, part in zip(self.rows[number, agent], group, strict=True):
                    for mark, value in zip(row.marks, part.values.tolist(), strict=True):
                        series[mark.node] = value
                values[number][agent] = tuple(series)
        return list(values.values())

    def with_advantages(
        self,
        parts: Parts,
        episodes: Episodes,
        numbers: Sequence[int],
        values: Sequence[AgentValues] | None,
    ) -> tuple[dict[str, ModelRows], dict[str, float]]:
        """Returns the rows of each actor for the trees `numbers`, and statistics of the advantages.
        The rows include advantages, computed from `values`. `parts` are the algorithm's parts at
        this point of the training budget."""
        batch = [episodes[number] for number in numbers]
        advantages = equal_groups(
            parts.advantage(batch, values), parts.advantage, batch, self.model
        )
        targets = None
        if self.shared_head and values is not None:
            targets = parts.advantage.targets(batch, values)
        by_model = {name: ModelRows(learner) for name, learner in self.actors.items()}
        for place, number in enumerate(numbers):
            for agent in batch[place].tree.agents:
                name = self.model(batch[place].tree, agent)
                if name is not None:
                    of_tree = by_model[name].by_tree.setdefault(number, [])
                    for row in self.rows[number, agent]:
                        aims = None if targets is None else targets[place]
                        row = with_advantages(row, agent, advantages[place], aims)
                        if row.spans or row.marks:
                            of_tree.append(row)
        of_state = parts.critic is not None and parts.critic.of_state
        metrics = advantage_metrics(advantages, batch, values, of_state=of_state)
        return by_model, metrics

    def _spec_of(self, tree: Tree[Any], agent: str) -> AgentSpec | None:
        spec = self.specs.get(tree.player(agent))
        return spec if spec is not None and spec.model in self.actors else None

    def _plays(self, name: str, number: int, agent: str) -> bool:
        return self.model(self.trees[number], agent) == name

    def _groups(self, name: str) -> list[list[Row]]:
        """All rows of a model."""
        return [rows for key, rows in self.rows.items() if self._plays(name, *key)]

    def _attach(
        self, name: str, kind: Literal["old", "ref"], outputs: Sequence[Sequence[Outputs]]
    ) -> None:
        keys = [key for key in self.rows if self._plays(name, *key)]
        for key, group in zip(keys, outputs, strict=True):
            self.rows[key] = [
                with_logprobs(row, kind, tuple(part.logprobs.tolist()))
                for row, part in zip(self.rows[key], group, strict=True)
            ]
