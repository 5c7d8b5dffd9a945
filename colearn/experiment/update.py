"""One iteration's update: epochs of minibatches of joint transitions through critic and actors.

The updater composes parts and learners; it knows neither algorithms nor devices.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from colearn.contract import AgentValues, Learner, NodeAdvantages, Parts
from colearn.contract.algorithm import ValueLoss
from colearn.contract.rows import Outputs, Row
from colearn.learn.evaluate import evaluate
from colearn.learn.row import actor_rows
from colearn.models.network import Network
from colearn.seeding import derive_rng
from colearn.types import Tree

from .critics import CriticTrainer, values_by_agent
from .diagnostics import advantage_metrics
from .objective import actor_objective, with_logprobs, with_targets

Trees = Sequence[Tree[Any]]


@dataclass(frozen=True, slots=True)
class Role:
    """An agent as the updater sees it: the model that plays it, and how it was sampled."""

    model: str
    temperature: float
    window: int | None


@dataclass(slots=True)
class Updater:
    """Turns trees into optimiser steps.

    Order within a minibatch (Alg. 1, lines 17-24): values and TD targets from the current critic,
    advantages from those same values, gradients of critic and actors, then all steps.
    """

    parts: Parts
    roles: Mapping[str, Role]
    actors: Mapping[str, Learner]
    """Learners of the trained models, by model name."""
    critic: CriticTrainer | None
    shared_head: bool
    """The value head sits on the actors: their rows carry the marks."""
    references: Mapping[str, Network]
    seed: int
    epochs: int
    minibatch: int | None
    token_budget: int

    def update(self, trees: Trees, iteration: int, done: float = 0.0) -> dict[str, float]:
        """Metrics are means over the optimiser steps of the iteration. `done` is the share of the
        training budget used before it, for schedules.

        Errors: FloatingPointError naming the learner where a loss or gradient is not finite.
        """
        batches = [
            (batch, epoch)
            for epoch in range(self.epochs)
            for batch in self._minibatches(trees, iteration, epoch)
        ]
        rows = self._rows(trees, several_steps=len(batches) > 1)
        old_values = self._old_values(trees, rows)
        fixed = None if self.parts.advantage.uses_values else self.parts.advantage(trees)
        sums: dict[str, list[float]] = {}
        for numbers, _ in batches:
            metrics = self._step(trees, numbers, rows, old_values, fixed, done)
            for key, value in metrics.items():
                sums.setdefault(key, []).append(value)
        result = {key: float(np.mean(values)) for key, values in sums.items()}
        result["optimizer_steps"] = float(len(batches))
        return result

    def _minibatches(self, trees: Trees, iteration: int, epoch: int) -> Iterator[list[int]]:
        """Tree numbers, shuffled, cut so that each cut holds about `minibatch` transitions."""
        if self.minibatch is None:
            yield list(range(len(trees)))
            return
        order = derive_rng(self.seed, "minibatch", iteration, epoch).permutation(len(trees))
        current: list[int] = []
        size = 0
        for number in order.tolist():
            count = len(trees[number].nodes) - 1
            if current and size + count > self.minibatch:
                yield current
                current, size = [], 0
            current.append(number)
            size += count
        yield current

    def _rows(self, trees: Trees, *, several_steps: bool) -> dict[tuple[int, str], list[Row]]:
        """Every trained agent's rows of every tree, with old and reference log-probabilities."""
        found: dict[tuple[int, str], list[Row]] = {}
        for agent, role in self.roles.items():
            if role.model not in self.actors:
                continue
            for number, tree in enumerate(trees):
                found[number, agent] = actor_rows(
                    tree,
                    agent,
                    key=number,
                    window=role.window,
                    temperature=role.temperature,
                    budget=None if self.shared_head else self.token_budget,
                    value=self.parts.critic.value
                    if self.shared_head and self.parts.critic is not None
                    else None,
                )
        for name, learner in self.actors.items():
            keys = [key for key in found if self.roles[key[1]].model == name]
            groups = [found[key] for key in keys]
            if several_steps:
                self._attach(found, keys, "old", learner.evaluate(groups))
            if self.parts.loss.needs_reference:
                bare = [[replace(row, marks=()) for row in group] for group in groups]
                outputs = (
                    evaluate(self.references[name], bare, token_budget=self.token_budget)
                    if name in self.references
                    else learner.evaluate(bare, reference=True)
                )
                self._attach(found, keys, "ref", outputs)
        return found

    @staticmethod
    def _attach(
        rows: dict[tuple[int, str], list[Row]],
        keys: Sequence[tuple[int, str]],
        name: Literal["old", "ref"],
        outputs: Sequence[Sequence[Outputs]],
    ) -> None:
        for key, group in zip(keys, outputs, strict=True):
            rows[key] = [
                with_logprobs(row, name, tuple(part.logprobs.tolist()))
                for row, part in zip(rows[key], group, strict=True)
            ]

    def _old_values(
        self, trees: Trees, rows: Mapping[tuple[int, str], list[Row]]
    ) -> list[AgentValues] | None:
        """Values at rollout, where the value loss asks for them."""
        settings = self._value_settings
        if self.parts.critic is None or not (settings.frozen_targets or settings.clip is not None):
            return None
        if self.critic is not None:
            return self.critic.read(trees)
        return self._head_values(trees, rows, range(len(trees)))

    @property
    def _value_settings(self) -> ValueLoss:
        return self.parts.value_loss or ValueLoss()

    def _head_values(
        self, trees: Trees, rows: Mapping[tuple[int, str], list[Row]], numbers: Sequence[int]
    ) -> list[AgentValues]:
        """Values from the heads on the trained actors, for the given trees."""
        assert self.parts.critic is not None
        found: list[dict[str, Sequence[float | None]]] = [{} for _ in numbers]
        for agent, role in self.roles.items():
            if role.model not in self.actors:
                continue
            outputs = self.actors[role.model].evaluate([rows[n, agent] for n in numbers])
            for place, (number, group) in enumerate(zip(numbers, outputs, strict=True)):
                at = {
                    mark.node: value
                    for row, part in zip(rows[number, agent], group, strict=True)
                    for mark, value in zip(row.marks, part.values.tolist(), strict=True)
                }
                found[place] |= values_by_agent(trees[number], self.parts.critic, agent, at)
        return list(found)

    def _step(
        self,
        trees: Trees,
        numbers: Sequence[int],
        rows: Mapping[tuple[int, str], list[Row]],
        old_values: Sequence[AgentValues] | None,
        fixed: Sequence[NodeAdvantages] | None,
        done: float,
    ) -> dict[str, float]:
        mine = [trees[number] for number in numbers]
        old = None if old_values is None else [old_values[number] for number in numbers]
        metrics: dict[str, float] = {}
        values: list[AgentValues] | None = None
        if self.critic is not None:
            values, found = self.critic.train(mine, old)
            metrics |= {f"critic/{key}": value for key, value in found.items()}
        elif self.shared_head:
            values = self._head_values(trees, rows, numbers)
            if old is not None and self._value_settings.frozen_targets:
                values = old
        if fixed is None:
            advantages = self.parts.advantage(mine, values)
        else:
            advantages = [fixed[number] for number in numbers]
        targets = (
            self.parts.advantage.targets(mine, values)
            if self.shared_head and values is not None
            else None
        )
        for name, learner in self.actors.items():
            groups = [
                [with_targets(row, agent, advantages[place], targets, old, place)]
                for place, number in enumerate(numbers)
                for agent, role in self.roles.items()
                if role.model == name
                for row in rows[number, agent]
                if row.spans or row.marks
            ]
            found = learner.accumulate(
                groups, actor_objective(self.parts.loss, self._value_settings, groups)
            )
            metrics |= {f"{name}/{key}": value for key, value in found.items()}
        if self.critic is not None:
            for reader, learner in self.critic.learners.items():
                metrics |= {f"critic/{reader}/{k}": v for k, v in learner.step(done).items()}
        for name, learner in self.actors.items():
            metrics |= {f"{name}/{key}": value for key, value in learner.step(done).items()}
        return metrics | advantage_metrics(
            advantages, mine, values, self.parts.critic.value if self.parts.critic else None
        )
