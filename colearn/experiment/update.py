"""One iteration's update: epochs of minibatches of joint transitions through critic and actors.

The updater composes parts and learners; it knows neither algorithms nor devices.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from colearn.contract import AgentValues, Episodes, Learner, Parts
from colearn.contract.rows import Outputs, Row
from colearn.learn.critic_row import head_value
from colearn.learn.evaluate import evaluate
from colearn.learn.follower import Follower
from colearn.learn.minibatch import minibatches
from colearn.learn.row import actor_rows
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


@dataclass(frozen=True, slots=True)
class _Ready:
    """Rows with all that a loss needs, by actor and by the episode's number; and what their
    advantages were like."""

    rows: Mapping[str, Mapping[int, Sequence[Row]]]
    metrics: Mapping[str, float]
    last: dict[str, tuple[Sequence[int], list[list[Row]]]] = field(default_factory=dict)

    def groups(self, name: str, numbers: Sequence[int]) -> list[list[Row]]:
        """An actor's rows of these episodes; for the episodes of the last call the same list, by
        which a learner knows what it has prepared."""
        if name not in self.last or self.last[name][0] != numbers:
            own = self.rows[name]
            self.last[name] = numbers, [[row] for n in numbers for row in own.get(n, ())]
        return self.last[name][1]


@dataclass(slots=True)
class Updater:
    """Turns trees into optimiser steps. Roles are those of players; an episode's cast says which of
    them sat in an agent's seat, and only trained models enter an update.

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
    references: Mapping[str, Follower]
    """By model name, where the reference policy has weights of its own; a base without its adapter
    is one, too."""
    seed: int
    epochs: int
    minibatch: int | None
    token_budget: int
    target_kl: float | None = None

    def update(self, trees: Trees, iteration: int, done: float = 0.0) -> dict[str, float]:
        """Metrics are means over the optimiser steps of the iteration. `done` is the share of the
        training budget used before it, for schedules.

        Errors: FloatingPointError naming the learner where a loss or gradient is not finite.
        """
        now = self.parts.at(done)
        epochs = [list(self._minibatches(trees, iteration, n)) for n in range(self.epochs)]
        rows = self._rows(trees, several_steps=sum(map(len, epochs)) > 1)
        episodes = self.parts.credited(trees)
        if self.parts.critic is not None and self.parts.value_loss.rescale:
            self._rescale(episodes)
        if self.critic is not None:
            self.critic.use(now.advantage, now.value_loss)
            self.critic.prepare(trees)
        old_values = self._old_values(trees, rows)
        sums: dict[str, list[float]] = {}
        fixed = None
        frozen = old_values if self.parts.value_loss.frozen_targets else None
        if frozen is not None or not self.parts.advantage.reads:
            if self.critic is not None and frozen is not None:
                self.critic.freeze(episodes, frozen)
            fixed = self._ready(now, episodes, range(len(trees)), rows, frozen, old_values)
            sums = {key: [value] for key, value in fixed.metrics.items()}
        steps = 0
        for batches in epochs:
            moved: list[float] = []
            for numbers in batches:
                metrics = self._step(now, episodes, numbers, rows, old_values, fixed, done)
                moved += [metrics.get(f"{name}/moved", 0.0) for name in self.actors]
                for key, value in metrics.items():
                    sums.setdefault(key, []).append(value)
            steps += len(batches)
            if self.target_kl is not None and float(np.mean(moved)) > self.target_kl:
                break
        refresh = self.parts.loss.refresh
        if refresh is not None and (iteration + 1) % refresh == 0:
            for reference in self.references.values():
                reference.follow()
        result = {key: float(np.mean(values)) for key, values in sums.items()}
        result["optimizer_steps"] = float(steps)
        return result

    def _rescale(self, episodes: Episodes) -> None:
        """Move every value head's scale to the returns of the agents that it values."""
        assert self.parts.critic is not None
        heads: dict[str, tuple[Learner, list[float]]] = {}
        for episode in episodes:
            tree = episode.tree
            for reader, agents in self.parts.critic.readers(tree.agents).items():
                name = self._model(tree, reader) if self.critic is None else None
                if self.critic is not None:
                    name = self.critic.value_model(reader)
                if name is None:
                    continue
                learner = self.actors[name] if self.critic is None else self.critic.learners[name]
                _, found = heads.setdefault(name, (learner, []))
                for agent in agents:
                    returns = episode.returns(agent)
                    found += [returns[node.index] for node in tree.nodes if agent in node.actions]
        for learner, found in heads.values():
            learner.observe(found)

    def _minibatches(self, trees: Trees, iteration: int, epoch: int) -> Iterator[list[int]]:
        rng = derive_rng(self.seed, "minibatch", iteration, epoch)
        return minibatches(trees, self.minibatch, rng.permutation(len(trees)).tolist())

    def _rows(self, trees: Trees, *, several_steps: bool) -> dict[tuple[int, str], list[Row]]:
        """Every trained agent's rows of every tree, with old and reference log-probabilities."""
        found: dict[tuple[int, str], list[Row]] = {}
        head = head_value(self.parts.critic) if self.shared_head else None
        for agent in trees[0].agents:
            for number, tree in enumerate(trees):
                role = self._role(tree, agent)
                if role is None:
                    continue
                found[number, agent] = actor_rows(
                    tree,
                    agent,
                    key=number,
                    window=role.window,
                    temperature=role.temperature,
                    budget=None if self.shared_head else self.token_budget,
                    value=head,
                )
        for name, learner in self.actors.items():
            keys = [key for key in found if self._model(trees[key[0]], key[1]) == name]
            groups = [found[key] for key in keys]
            if several_steps and self.parts.loss.old == "read":
                self._attach(found, keys, "old", learner.evaluate(groups))
            if self.parts.loss.needs_reference:
                bare = [
                    [replace(row, marks=()) if row.marks else row for row in group]
                    for group in groups
                ]
                outputs = (
                    evaluate(self.references[name].network, bare, token_budget=self.token_budget)
                    if name in self.references
                    else learner.evaluate(bare, reference=True)
                )
                self._attach(found, keys, "ref", outputs)
        return found

    def _role(self, tree: Tree[Any], agent: str) -> Role | None:
        """Whoever sat in an agent's seat, if its model is trained."""
        role = self.roles.get(tree.player(agent))
        return role if role is not None and role.model in self.actors else None

    def _model(self, tree: Tree[Any], agent: str) -> str | None:
        role = self._role(tree, agent)
        return None if role is None else role.model

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
        settings = self.parts.value_loss
        if self.parts.critic is None or not (settings.frozen_targets or settings.clip is not None):
            return None
        if self.critic is not None:
            return self.critic.read(trees)
        return self._head_values(trees, rows, range(len(trees)))

    def _head_values(
        self, trees: Trees, rows: Mapping[tuple[int, str], list[Row]], numbers: Sequence[int]
    ) -> list[AgentValues]:
        """Values from the heads on the trained actors, for the given trees."""
        assert self.parts.critic is not None
        found: list[dict[str, Sequence[float | None]]] = [{} for _ in numbers]
        asked: dict[str, list[tuple[int, str]]] = {}
        for agent in trees[0].agents:
            for place, number in enumerate(numbers):
                model = self._model(trees[number], agent)
                if model is not None:
                    asked.setdefault(model, []).append((place, agent))
        for model, seats in asked.items():
            outputs = self.actors[model].evaluate([rows[numbers[p], a] for p, a in seats])
            for (place, agent), group in zip(seats, outputs, strict=True):
                number = numbers[place]
                at = {
                    mark.node: value
                    for row, part in zip(rows[number, agent], group, strict=True)
                    for mark, value in zip(row.marks, part.values.tolist(), strict=True)
                }
                found[place] |= values_by_agent(trees[number], self.parts.critic, agent, at)
        return list(found)

    def _ready(
        self,
        now: Parts,
        episodes: Episodes,
        numbers: Sequence[int],
        rows: Mapping[tuple[int, str], list[Row]],
        values: Sequence[AgentValues] | None,
        old: Sequence[AgentValues] | None,
    ) -> _Ready:
        """Advantages of the episodes `numbers`, from their `values`, on the rows to train."""
        mine = [episodes[number] for number in numbers]
        advantages = now.advantage(mine, values)
        targets = None
        if self.shared_head and values is not None:
            targets = now.advantage.targets(mine, values)
        by_model: dict[str, dict[int, list[Row]]] = {name: {} for name in self.actors}
        for place, number in enumerate(numbers):
            for agent in mine[place].tree.agents:
                name = self._model(mine[place].tree, agent)
                if name is not None:
                    ready = by_model[name].setdefault(number, [])
                    for row in rows[number, agent]:
                        row = with_targets(row, agent, advantages[place], targets, old, place)
                        if row.spans or row.marks:
                            ready.append(row)
        reads = self.parts.critic.value if self.parts.critic else None
        return _Ready(by_model, advantage_metrics(advantages, mine, values, reads))

    def _step(
        self,
        now: Parts,
        episodes: Episodes,
        numbers: Sequence[int],
        rows: Mapping[tuple[int, str], list[Row]],
        old_values: Sequence[AgentValues] | None,
        fixed: _Ready | None,
        done: float,
    ) -> dict[str, float]:
        mine = [episodes[number] for number in numbers]
        old = None if old_values is None else [old_values[number] for number in numbers]
        metrics: dict[str, float] = {}
        values: list[AgentValues] | None = None
        if self.critic is not None:
            values, found = self.critic.train(mine, old)
            metrics |= {f"critic/{key}": value for key, value in found.items()}
        elif self.shared_head and fixed is None:
            values = self._head_values([one.tree for one in episodes], rows, numbers)
        ready = fixed
        if ready is None:
            ready = self._ready(now, episodes, numbers, rows, values, old)
            metrics |= ready.metrics
        trained: list[str] = []
        for name, learner in self.actors.items():
            groups = ready.groups(name, numbers)
            if not groups:
                continue  # nothing that this model did here has an advantage
            trained.append(name)
            found = learner.accumulate(groups, actor_objective(now.loss, now.value_loss, groups))
            metrics |= {f"{name}/{key}": value for key, value in found.items()}
        if self.critic is not None:
            for reader, learner in self.critic.learners.items():
                metrics |= {f"critic/{reader}/{k}": v for k, v in learner.step(done).items()}
        for name in trained:
            found = self.actors[name].step(done)
            metrics |= {f"{name}/{key}": value for key, value in found.items()}
        return metrics
