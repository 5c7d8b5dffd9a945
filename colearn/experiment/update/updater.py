"""Updater: converts trees to rows, values and advantages, then runs epochs of minibatches for every
model.

The updater combines parts and learners and does not depend on algorithm or device;
docs/concepts/update.md explains each step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from colearn.advantage.expectile import expectile
from colearn.contract import (
    Accumulated,
    AgentValues,
    FrozenCopy,
    Learner,
    NetworkKey,
    Objective,
    Parts,
    Prepared,
    Values,
)
from colearn.contract.host import Together, one_by_one
from colearn.learn.minibatch import UpdateSchedule
from colearn.record.fields import CriticLine
from colearn.value_model.item_means import ItemMeans, Offsets

from .actors import Actors, Trees
from .critic_line import critic_line
from .critics import Critics
from .diagnostics import similarity_metrics
from .given_critics import GivenCritics
from .item_baseline import ItemBaseline
from .model_rows import Iteration, ModelRows, without_states
from .objective import ActorObjective
from .random_rewards import rewards_are_random
from .surprise import Surprise
from .value_scale import head_returns

Fits = dict[NetworkKey, Callable[[], tuple[Accumulated, dict[str, float]]]]


@dataclass(slots=True)
class Updater:
    """Converts trees into optimiser steps. Only trained models are updated.

    Order of the steps within a minibatch (Alg. 1, lines 17-24): compute values and TD targets with
    the current critic; take the critic's step; compute advantages from the values before this step;
    compute every actor's gradient and take its step. No gradient depends on another model's step,
    so only one model's gradients are in memory.
    """

    parts: Parts
    actors: Actors
    critic: Critics | None
    """The value models; None without a critic, and if the value heads are on the actors."""
    references: Mapping[str, FrozenCopy]
    """Reference policies with separate weights, by model name. For a model without an entry, the
    reference is the base without the model's adapter."""
    seed: int
    schedule: UpdateSchedule
    """Epochs and minibatches of the critics, and of those actors that have no entry in
    `own_schedules`."""
    token_budget: int
    together: Together = one_by_one
    """Function of the host that runs one call on each of several models."""
    target_kl: float | None = None
    own_schedules: Mapping[str, UpdateSchedule] = field(default_factory=dict)
    """Separate schedules of single actors, by model name. The advantages of an actor with a
    separate schedule must be computed once, at rollout time, because this actor is not part of the
    joint minibatches for which a critic recomputes advantages."""
    critic_alone: int = 0
    """Number of initial iterations in which only the critic is trained."""
    given: GivenCritics | None = None
    """Scales of the returns, and freezing time, of value models that were trained in another run;
    None: value models start untrained."""
    critic_schedule: UpdateSchedule | None = None
    """Separate epochs and minibatches of the critics; the actors' advantages must then be computed
    once. None: critics use `schedule`, together with the actors."""
    item_means: ItemMeans = field(default_factory=ItemMeans)
    """Mean returns by item and turn, to which a critic is compared."""
    item_baseline: bool = False
    """Whether a value is the item's mean plus a share of the value model's residual."""
    critic_line: CriticLine | None = None
    """Explained variance of the critic in the last update; None without a critic or values."""
    random_rewards: bool = False
    """Whether random rewards were detected, up to and including this iteration; saved in
    checkpoints. Always False if no part needs the detection (`if_deterministic`)."""
    changing: Callable[[], None] = lambda: None
    """Called before each change to a model's state."""

    @property
    def surprise(self) -> Surprise | None:
        """The surprise of the current critic; None if no value model estimates V(h)."""
        if self.critic is None or not self.critic.critic.of_state:
            return None
        return Surprise(
            parts=self.parts,
            critics=self.critic,
            learns=self.actors.learns,
            item_means=self.item_means if self.item_baseline else None,
        )

    def update(
        self, trees: Trees, iteration: int, done: float = 0.0, sampled_at: float | None = None
    ) -> dict[str, float]:
        """Update all models; returns metrics as means over the iteration's optimiser steps.

        The metric `optimizer_steps` counts joint steps; steps of a model with a separate schedule
        are counted under the model's name. `done` is the used fraction of the training budget, for
        schedules. `sampled_at` is the fraction that determined the temperatures of `trees`; None:
        `done`.
        Errors: FloatingPointError naming the learner if a loss or gradient is not finite.
        """
        actors = {} if iteration < self.critic_alone else self.actors.learners
        cut = partial(UpdateSchedule.minibatches, trees=trees, seed=self.seed, iteration=iteration)
        joint = cut(self.schedule)
        own = {name: cut(one) for name, one in self.own_schedules.items() if name in actors}
        several = {name for name in actors if sum(map(len, own.get(name, joint))) > 1}
        sampled_at = done if sampled_at is None else sampled_at
        still = self.given is not None and self.given.still(done)
        shared = self._prepare(trees, several, iteration, done, sampled_at, still)
        by_metric = {key: [value] for key, value in shared.metrics.items()}
        team = {name: learner for name, learner in actors.items() if name not in own}
        critic = None if still else self.critic
        if critic is not None and self.critic_schedule is not None:
            by_metric |= self._train(shared, cut(self.critic_schedule), {}, critic, self.together)[
                0
            ]
            critic = None
        metrics, steps = self._train(shared, joint, team, critic, self.together)
        for key, values in metrics.items():
            by_metric.setdefault(key, []).extend(values)
        runs = {
            NetworkKey("actor", name): partial(
                self._train, shared, epochs, {name: actors[name]}, None, one_by_one
            )
            for name, epochs in own.items()
        }
        for actor, (metrics, own_steps) in self.together(runs).items() if runs else ():
            by_metric |= {**metrics, f"{actor.model}/optimizer_steps": [float(own_steps)]}
        refresh = self.parts.loss.reference_update_every
        if refresh is not None and (iteration + 1) % refresh == 0:
            self.changing()
            for reference in self.references.values():
                reference.copy_weights()
        self.critic_line = None
        if self.parts.critic is not None:
            self.critic_line = critic_line(
                self.parts.critic,
                iteration + 1,
                shared.values_read,
                shared.episodes,
                trees,
                shared.item_means,
            )
        result = {key: float(np.mean(values)) for key, values in by_metric.items()}
        result |= similarity_metrics(self.parts.advantage.answer_groups(shared.episodes))
        result["optimizer_steps"] = float(steps)
        if self.parts.if_deterministic:
            result["random_rewards"] = float(self.random_rewards)
        return result

    def _prepare(
        self,
        trees: Trees,
        several: set[str],
        iteration: int,
        done: float,
        sampled_at: float,
        still: bool,
    ) -> Iteration:
        """Returns the rows of an iteration, with all quantities that are computed once per
        iteration: old log-probabilities, log-probabilities of the references, values at rollout
        time, and quantities computed from these values. Old log-probabilities are computed for the
        models in `several`, which take several steps. `still` states whether the critic is
        frozen."""
        parts = self._parts_at(trees, done)
        rows = self.actors.rows(trees, self.token_budget, sampled_at)
        if self.parts.loss.old_logprobs == "recompute":
            self.actors.add_old_logprobs(rows, several, self.together)
        if self.parts.loss.needs_reference:
            self.actors.add_reference_logprobs(rows, self.references)
        episodes = [without_states(episode) for episode in self.parts.credited(trees)]
        means: Offsets = ()
        if self.parts.critic is not None:
            means = self.item_means.offsets(self.parts.critic, episodes, trees)
        baseline = None
        if self.item_baseline and self.parts.critic is not None:
            shares = self.item_means.shares(self.parts.critic, trees)
            baseline = ItemBaseline(
                self.item_means, self.parts.critic, episodes, trees, means, shares
            )
        baselines = None if baseline is None else baseline.offsets
        critic_rows: Mapping[str, ModelRows] = {}
        if self.critic is not None:
            critic_rows = self.critic.rows(trees, self.actors.learns, baselines)
        read = partial(self._read, trees, rows, critic_rows, baselines)
        if self.given is not None and self.critic is not None and iteration == 0:
            self.changing()
            self.given.recentre(self.critic, episodes, read())
        elif self.parts.critic is not None and self.parts.value_loss.rescale and not still:
            returns = head_returns(self.parts.critic, self.critic, self.actors, episodes, baselines)
            for learner, earned in returns:
                self.changing()
                learner.observe(earned, expectile(earned, parts.value_loss.expectile))
        frozen = parts.value_loss.frozen_targets or still
        clipped = parts.value_loss.clip is not None
        values = None
        if self.parts.critic is not None and (frozen or clipped):
            values = read()
            if self.critic is not None:
                self.critic.add("old_values", critic_rows, trees, values)
            else:
                self.actors.add_old_values(rows, values)
        if baseline is not None and frozen and values is not None:
            values = baseline.values(range(len(trees)), values)
        if self.critic is not None and frozen and values is not None:
            targets = parts.advantage.targets(episodes, values)
            self.critic.add("targets", critic_rows, trees, targets)
        fixed, metrics = None, dict[str, float]()
        if frozen or not parts.advantage.reads:
            fixed, metrics = self.actors.with_advantages(
                rows, parts, episodes, range(len(trees)), values if frozen else None
            )
        shared = Iteration(
            parts=parts,
            done=done,
            episodes=episodes,
            actor_rows=rows,
            critic_rows=critic_rows,
            fixed=fixed,
            metrics=metrics,
            item_means=means,
            baseline=baseline,
        )
        if frozen and values is not None:
            shared.note_values(range(len(trees)), values)
        return shared

    def _read(
        self,
        trees: Trees,
        rows: Mapping[str, ModelRows],
        critic_rows: Mapping[str, ModelRows],
        baselines: Offsets | None,
    ) -> list[AgentValues]:
        """Computes the values of the current critic, without gradient."""
        if self.critic is None:
            return self.actors.read(trees, rows, range(len(trees)))
        return self.critic.read(trees, self.actors.learns, critic_rows, baselines)

    def _train(
        self,
        shared: Iteration,
        epochs: Sequence[Sequence[Sequence[int]]],
        actors: Mapping[str, Learner],
        critic: Critics | None,
        together: Together,
    ) -> tuple[dict[str, list[float]], int]:
        """Train the actors, and the critic if there is one, on every minibatch of every epoch.
        Returns the values of each metric by minibatch, and the number of minibatches in which at
        least one model took a step."""
        by_metric: dict[str, list[float]] = {}
        steps = 0
        for minibatches in epochs:
            divergences: list[float] = []
            for numbers in minibatches:
                metrics = self._minibatch(shared, numbers, actors, critic, together)
                keys = (f"{name}/approx_kl" for name in actors)
                divergences += [metrics[key] for key in keys if key in metrics]
                for key, value in metrics.items():
                    by_metric.setdefault(key, []).append(value)
                steps += bool(metrics)
            limit = self.target_kl
            if limit is not None and divergences and float(np.mean(divergences)) > limit:
                break
        return by_metric, steps

    def _minibatch(
        self,
        shared: Iteration,
        numbers: Sequence[int],
        actors: Mapping[str, Learner],
        critic: Critics | None,
        together: Together,
    ) -> dict[str, float]:
        """Take one step of the critic, then one step of every actor, on the trees `numbers`."""
        metrics: dict[str, float] = {}
        values: list[AgentValues] | None = None
        if critic is not None:
            values = self._fit_critic(critic, shared, numbers, metrics, together)
            if shared.baseline is not None and shared.fixed is None:
                values = shared.baseline.values(numbers, values)
        elif self.actors.value is not None and shared.fixed is None:
            trees = shared.episodes
            values = self.actors.read(trees, shared.actor_rows, numbers)
        advantages = shared.fixed
        if advantages is None:
            if values is not None:
                shared.note_values(numbers, values)
            advantages, statistics = self.actors.with_advantages(
                shared.actor_rows, shared.parts, shared.episodes, numbers, values
            )
            metrics |= statistics
        fits: Fits = {}
        for name, learner in actors.items():
            prepared = advantages[name].prepared(numbers)
            if prepared.groups:  # some of its actions have an advantage
                parts = shared.parts
                objective = ActorObjective.of(parts.loss, parts.value_loss, prepared.groups)
                key = NetworkKey("actor", name)
                fits[key] = partial(self._fit, learner, prepared, objective, shared.done)
        for key, (accumulated, stepped) in together(fits).items():
            fitted = {**accumulated.metrics, **stepped}
            metrics |= {f"{key.model}/{name}": value for name, value in fitted.items()}
        return metrics

    def _fit_critic(
        self,
        critic: Critics,
        shared: Iteration,
        numbers: Sequence[int],
        metrics: dict[str, float],
        together: Together,
    ) -> list[AgentValues]:
        """Take one step of every value model and add entries to `metrics`. Returns the values
        before the step, which the training pass reads."""
        frozen = shared.fixed is not None
        episodes = None if frozen else {number: shared.episodes[number] for number in numbers}
        fits: Fits = {}
        for name, rows in shared.critic_rows.items():
            prepared = rows.prepared(numbers)
            if prepared.groups:  # a trained agent of its readers acted
                objective = critic.objective(
                    shared.parts.advantage, shared.parts.value_loss, prepared, episodes
                )
                key = NetworkKey("critic", name)
                fits[key] = partial(self._fit, rows.learner, prepared, objective, shared.done)
        values: dict[int, dict[str, Values]] = {number: {} for number in numbers}
        for key, (accumulated, stepped) in together(fits).items():
            prepared = shared.critic_rows[key.model].prepared(numbers)
            critic.collect(values, prepared, accumulated.values, shared.episodes)
            for name, value in accumulated.metrics.items():
                total = metrics.get(f"critic/{name}", 0.0)
                metrics[f"critic/{name}"] = total + value / len(critic.learners)
            metrics |= {f"critic/{key.model}/{name}": value for name, value in stepped.items()}
        return list(values.values())

    def _fit(
        self, learner: Learner, prepared: Prepared, objective: Objective, done: float
    ) -> tuple[Accumulated, dict[str, float]]:
        """Compute one model's gradient on a minibatch and take one step."""
        accumulated = learner.accumulate(prepared, objective)
        self.changing()
        return accumulated, learner.step(done)

    def _parts_at(self, trees: Trees, done: float) -> Parts:
        """Returns the algorithm's parts for this update. Random rewards that are detected in
        `trees` already affect this update."""
        if self.parts.if_deterministic and not self.random_rewards:
            self.random_rewards = rewards_are_random(trees)
        parts = self.parts.at(done)
        return parts.risk_neutral() if self.random_rewards else parts
