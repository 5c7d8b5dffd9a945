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
)
from colearn.contract.host import Together, one_by_one
from colearn.contract.rows import Row
from colearn.learn.minibatch import UpdateSchedule
from colearn.record.fields import CriticLine
from colearn.text.notes import note_once
from colearn.value_model.item_means import ItemMeans, Offsets, Shares, scaled

from .actors import Actors
from .critic_line import critic_line
from .critics import Critics
from .diagnostics import similarity_metrics
from .given_critics import GivenCritics
from .objective import FitResults, Fits
from .random_rewards import rewards_are_random
from .rows import ModelRows, Trees, without_states
from .surprise import Surprise
from .value_scale import head_returns


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
        """Update all models; returns metrics as means over the iteration's optimiser steps. The
        comments give the numbers of the steps in docs/concepts/update.md.

        The metric `optimizer_steps` counts joint steps; steps of a model with a separate schedule
        are counted under the model's name. `done` is the used fraction of the training budget, for
        schedules. `sampled_at` is the fraction that determined the temperatures of `trees`; None:
        `done`.
        Errors: FloatingPointError naming the learner if a loss or gradient is not finite.
        """
        parts, all_numbers = self._parts_at(trees, done), range(len(trees))
        trained = {} if iteration < self.critic_alone else self.actors.learners
        still = self.given is not None and self.given.still(done)
        frozen = parts.value_loss.frozen_targets or still
        # 8, drawn first: a model that takes several steps needs old log-probabilities
        cut = partial(UpdateSchedule.minibatches, trees=trees, seed=self.seed, iteration=iteration)
        joint = cut(self.schedule)
        own_epochs = {
            name: cut(schedule) for name, schedule in self.own_schedules.items() if name in trained
        }
        several_steps = {name for name in trained if sum(map(len, own_epochs.get(name, joint))) > 1}
        # 2
        sampled_at = done if sampled_at is None else sampled_at
        rows = self.actors.rows(trees, self.token_budget, sampled_at)
        # 3
        if parts.loss.old_logprobs == "recompute":
            self.actors.add_old_logprobs(rows, several_steps, self.together)
        if parts.loss.needs_reference:
            self.actors.add_reference_logprobs(rows, self.references)
        # 4
        trees = parts.credited(trees)
        _note_left_out(parts, trees)
        # 5
        means: Offsets = ()
        shares: Shares = ()
        baselines: Offsets | None = None
        if parts.critic is not None:
            means = self.item_means.offsets(parts.critic, trees)
            if self.item_baseline:
                baselines, shares = means, self.item_means.shares(parts.critic, trees)
        critic_rows: Mapping[str, ModelRows] = {}
        if self.critic is not None:
            critic_rows = self.critic.rows(trees, self.actors.learns, baselines)
        read_values = partial(self._read, trees, rows, critic_rows, baselines)
        if self.given is not None and self.critic is not None and iteration == 0:
            self.changing()
            self.given.recentre(self.critic, trees, read_values())
        elif parts.critic is not None and parts.value_loss.rescale and not still:
            returns = head_returns(parts.critic, self.critic, self.actors, trees, baselines)
            for learner, earned in returns:
                self.changing()
                learner.observe(earned, expectile(earned, parts.value_loss.expectile))
        # 6
        values: list[AgentValues] | None = None
        if parts.critic is not None and (frozen or parts.value_loss.clip is not None):
            values = read_values()
            if self.critic is not None:
                self.critic.add("old_values", critic_rows, trees, values)
            else:
                self.actors.add_old_values(rows, values)
        values_read: dict[int, AgentValues] = {}

        def used(numbers: Sequence[int], values: list[AgentValues]) -> list[AgentValues]:
            """The values from which advantages are computed, by the values of the trees `numbers`.
            The first values of a tree are compared with its returns, because no step on this tree
            has been taken yet."""
            if parts.critic is not None and baselines is not None:
                used_trees = [trees[number] for number in numbers]
                offsets = [baselines[number] for number in numbers]
                if values_read.keys().isdisjoint(numbers):
                    self.item_means.compare(parts.critic, used_trees, values, offsets)
                factors = [shares[number] for number in numbers]
                values = scaled(parts.critic, used_trees, values, offsets, factors)
            for number, by_agent in zip(numbers, values, strict=True):
                values_read.setdefault(number, by_agent)
            return values

        # 7
        fixed: Mapping[str, ModelRows] | None = None
        by_metric: dict[str, list[float]] = {}
        if frozen or not parts.advantage.reads:
            if values is not None:
                values = used(all_numbers, values)
                if self.critic is not None:
                    targets = parts.advantage.targets(trees, values)
                    self.critic.add("targets", critic_rows, trees, targets)
            fixed, statistics = self.actors.with_advantages(rows, parts, trees, all_numbers, values)
            by_metric = {key: [value] for key, value in statistics.items()}
        current = None if fixed is not None else [without_states(tree) for tree in trees]

        def minibatch(
            numbers: Sequence[int],
            learners: Mapping[str, Learner],
            critic: Critics | None = None,
            together: Together = self.together,
        ) -> tuple[dict[str, float], dict[str, float]]:
            """Take one step of the critic, then one step of every actor, on the trees `numbers`.
            Returns statistics of the advantages, and the metrics of the steps: empty if no model
            took a step."""
            fit = partial(self._fit, done=done, together=together)
            ready, values = fixed, None
            statistics, metrics = dict[str, float](), dict[str, float]()
            # 9
            if critic is not None:
                values, metrics = critic.fit(critic_rows, numbers, parts, current, fit)
            elif fixed is None:
                values = self.actors.read(trees, rows, numbers)
            # 10
            if ready is None:
                assert values is not None
                values = used(numbers, values)
                ready, statistics = self.actors.with_advantages(rows, parts, trees, numbers, values)
            # 11
            return statistics, metrics | self.actors.fit(learners, ready, numbers, parts, fit)

        critic = None if still else self.critic
        if critic is not None and self.critic_schedule is not None:
            alone = partial(minibatch, learners={}, critic=critic)
            by_metric |= self._train(cut(self.critic_schedule), alone)[0]
            critic = None
        team = {name: learner for name, learner in trained.items() if name not in own_epochs}
        metrics, steps = self._train(joint, partial(minibatch, learners=team, critic=critic))
        for key, step_values in metrics.items():
            by_metric.setdefault(key, []).extend(step_values)
        runs = {
            NetworkKey("actor", name): partial(
                self._train,
                epochs,
                partial(minibatch, learners={name: trained[name]}, together=one_by_one),
            )
            for name, epochs in own_epochs.items()
        }
        for actor, (metrics, own_steps) in self.together(runs).items() if runs else ():
            by_metric |= {**metrics, f"{actor.model}/optimizer_steps": [float(own_steps)]}
        # 12
        refresh = self.parts.loss.reference_update_every
        if refresh is not None and (iteration + 1) % refresh == 0:
            self.changing()
            for reference in self.references.values():
                reference.copy_weights()

        self.critic_line = None
        if parts.critic is not None:
            self.critic_line = critic_line(parts.critic, iteration + 1, values_read, trees, means)
        result = {key: float(np.mean(step_values)) for key, step_values in by_metric.items()}
        result |= similarity_metrics(parts.advantage.answer_groups(trees))
        result["optimizer_steps"] = float(steps)
        if self.parts.if_deterministic:
            result["random_rewards"] = float(self.random_rewards)
        return result

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
        epochs: Sequence[Sequence[Sequence[int]]],
        minibatch: Callable[[Sequence[int]], tuple[dict[str, float], dict[str, float]]],
    ) -> tuple[dict[str, list[float]], int]:
        """Call `minibatch` for every minibatch of every epoch, until an epoch exceeds `target_kl`.
        Returns the values of each metric by minibatch, and the number of minibatches in which at
        least one model took a step."""
        by_metric: dict[str, list[float]] = {}
        steps = 0
        for minibatches in epochs:
            divergences: list[float] = []
            for numbers in minibatches:
                statistics, metrics = minibatch(numbers)
                divergences += [
                    value for key, value in metrics.items() if key.endswith("/approx_kl")
                ]
                for key, value in (*statistics.items(), *metrics.items()):
                    by_metric.setdefault(key, []).append(value)
                steps += bool(metrics)
            limit = self.target_kl
            if limit is not None and divergences and float(np.mean(divergences)) > limit:
                break
        return by_metric, steps

    def _fit(self, fits: Fits, *, done: float, together: Together) -> FitResults:
        """Take one optimiser step of each model."""

        def step(
            learner: Learner, rows: Sequence[Row], objective: Objective
        ) -> tuple[Accumulated, dict[str, float]]:
            accumulated = learner.accumulate(rows, objective)
            self.changing()
            return accumulated, learner.step(done)

        return together({key: partial(step, *fit) for key, fit in fits.items()})

    def _parts_at(self, trees: Trees, done: float) -> Parts:
        """Returns the algorithm's parts for this update. Random rewards that are detected in
        `trees` already affect this update."""
        if self.parts.if_deterministic and not self.random_rewards:
            self.random_rewards = rewards_are_random(trees)
        parts = self.parts.at(done)
        return parts.risk_neutral() if self.random_rewards else parts


def _note_left_out(parts: Parts, trees: Trees) -> None:
    """Note once if returns of truncated episodes are not trained."""
    bootstraps = parts.critic is not None and parts.critic.of_state
    if bootstraps or parts.missing_turn_reward is not None or not parts.advantage.reads_future:
        return
    if any(node.truncated for tree in trees for node in tree.nodes):
        note_once(
            "episodes were truncated before they ended, and returns that miss turns are not "
            "trained; set algorithm.missing_turn_reward to the reward of a failed turn, raise the "
            "limit that was reached, or name an algorithm with a critic"
        )
