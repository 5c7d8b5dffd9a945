"""Updater: converts trees to rows, values and advantages, then runs epochs of minibatches for every
model.

The updater combines parts and learners and does not depend on algorithm or device;
docs/concepts/update.md explains each step.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from colearn.contract import AgentValues, FrozenCopy, Parts
from colearn.contract.host import Together, one_by_one
from colearn.contract.part_errors import calling_part
from colearn.contract.rows import Outputs, Row
from colearn.contract.types import Tree
from colearn.methods.advantage.expectile import expectile
from colearn.methods.values.critics import Critics, without_states
from colearn.methods.values.given import GivenCritics
from colearn.methods.values.item_means import ItemMeans, Offsets, Shares, scaled
from colearn.runs.record.fields import CriticLine
from colearn.text.notes import note_once
from colearn.training.learners.minibatch import UpdateSchedule
from colearn.training.learners.reader import (
    Evaluate,
    Minibatches,
    Reader,
    Rows,
    Steps,
    Trees,
    fit,
)

from .actors import Actors
from .advantages import equal_groups, with_advantages
from .critic_line import critic_line
from .metrics import Kept, update_metrics
from .objective import ActorObjective
from .value_scale import head_returns

Epochs = Sequence[Sequence[Sequence[int]]]
"""For each epoch and minibatch: the numbers of its trees."""


@dataclass(slots=True, kw_only=True)
class UpdateState(Kept):
    """The data of one update."""

    done: float
    """The used fraction of the training budget."""
    rows: Rows
    """The actors' rows."""
    value_rows: Rows = field(default_factory=dict)
    """Rows at whose marks values are read: the value models' rows, or those of the actors."""
    shares: Shares = ()
    """The shares of the value models' residuals; empty unless values include item means."""
    fixed: Rows | None = None
    """The actors' rows with advantages, if the advantages are computed once."""
    stateless: Sequence[Tree[None]] = ()
    """The trees without the task's objects, if each minibatch computes its targets."""

    @property
    def baselines(self) -> Offsets | None:
        """The item means that are part of the values, if any."""
        return self.means if self.shares else None


@dataclass(slots=True)
class Updater:
    """Converts trees into optimiser steps. Only trained models are updated.

    Order of the steps within a minibatch (Alg. 1, lines 17-24): compute values and TD targets with
    the current critic; take the critic's step; compute advantages from the values before this step;
    compute every actor's gradient and take its step. No gradient depends on another model's step,
    so only one model's gradients are in memory, or those of the models with joint passes.
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
    """Epochs and minibatches of the actors, and of the critics unless `critic_schedule` is set."""
    token_budget: int
    together: Together = one_by_one
    """The team's function that runs one call on each of several models."""
    target_kl: float | None = None
    teachers: Mapping[str, Evaluate] = field(default_factory=dict)
    """Forward passes of teachers by model name, if the loss reads them."""
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

    def update(
        self, trees: Trees, iteration: int, done: float = 0.0, sampled_at: float | None = None
    ) -> dict[str, float]:
        """Update all models; returns metrics as means over the iteration's optimiser steps. The
        comments give the numbers of the steps in docs/concepts/update.md.

        `done` is the used fraction of the training budget, for schedules. `sampled_at` is the
        fraction that determined the temperatures of `trees`; None: `done`.
        Errors: FloatingPointError naming the learner if a loss or gradient is not finite.
        """
        parts = self.parts.at(done)
        trained = () if iteration < self.critic_alone else tuple(self.actors.learners)
        still = self.given is not None and self.given.still(done)
        # 8, drawn first: a model that takes several steps needs old log-probabilities
        cut = partial(UpdateSchedule.minibatches, trees=trees, seed=self.seed, iteration=iteration)
        joint = cut(self.schedule)
        # 2
        sampled_at = done if sampled_at is None else sampled_at
        rows = self.actors.rows(trees, self.token_budget, sampled_at)
        # 3
        self._add_logprobs(rows, parts, several_steps=bool(trained) and sum(map(len, joint)) > 1)
        # 4
        work = UpdateState(parts=parts, trees=parts.credited(trees), done=done, rows=rows)
        if parts.critic is not None:
            # 5
            self._add_item_means(work)
            self._scale_heads(work, first=iteration == 0, still=still)
        # 6, 7
        self._fix_advantages(work, still=still)
        # 9, 10, 11
        critic = None if still else self.critic
        if critic is not None and self.critic_schedule is not None:
            alone = partial(self._minibatch, work, (), critic=critic)
            work.critic_steps = self._train(cut(self.critic_schedule), alone)
            critic = None
        work.joint_steps = self._train(
            joint, partial(self._minibatch, work, trained, critic=critic)
        )
        # 12
        self._refresh_references(iteration)
        return self._told(work, iteration)

    def _add_logprobs(self, rows: Rows, parts: Parts, *, several_steps: bool) -> None:
        """Add the log-probabilities that the loss reads: old ones, computed with the current
        weights, if models take several optimiser steps; those of references and teachers.
        An adapter without a reference of its own has its base model as reference."""
        if parts.loss.old_logprobs == "recompute" and several_steps:
            current = {name: self.actors.learners[name].evaluate for name in rows}
            self.actors.add_logprobs("old_logprobs", rows, current, self.together)

        def reference(name: str, rows: Sequence[Row]) -> Sequence[Outputs]:
            unmarked = [replace(row, marks=()) for row in rows]
            if name in self.references:
                return self.references[name].evaluate(unmarked)
            return self.actors.learners[name].evaluate(unmarked, reference=True)

        if parts.loss.needs_reference:
            evaluate = {name: partial(reference, name) for name in rows}
            self.actors.add_logprobs("ref_logprobs", rows, evaluate)
        if parts.loss.needs_teacher:
            taught = {name: self.teachers[name] for name in rows}
            self.actors.add_logprobs("teacher_logprobs", rows, taught)

    @property
    def _heads(self) -> Reader:
        """The models with value heads."""
        return self.actors if self.critic is None else self.critic

    def _add_item_means(self, work: UpdateState) -> None:
        """Update the mean returns by item and turn, and pack the rows at which values are read."""
        critic = work.parts.critic
        assert critic is not None, "item means are those of a critic's readers"
        work.means = self.item_means.offsets(critic, work.trees)
        if self.item_baseline:
            work.shares = self.item_means.shares(critic, work.trees)
        work.value_rows = work.rows
        if self.critic is not None:
            work.value_rows = self.critic.rows(work.trees, self.actors.learns, work.baselines)

    def _scale_heads(self, work: UpdateState, *, first: bool, still: bool) -> None:
        """Set the scale of the value heads from this iteration's returns."""
        settings = work.parts.value_loss
        if self.given is not None and self.critic is not None and first:
            self.given.recentre(self.critic, work.trees, self._read(work))
        elif settings.rescale and not still:
            for learner, earned in head_returns(
                self._heads, self.actors.learns, work.trees, work.baselines
            ):
                learner.observe(earned, expectile(earned, settings.expectile))

    def _fix_advantages(self, work: UpdateState, *, still: bool) -> None:
        """Read the values at rollout, and compute targets and advantages from them, if they are
        computed once and not in every minibatch."""
        parts = work.parts
        frozen = parts.value_loss.frozen_targets or still
        values: dict[int, AgentValues] | None = None
        if parts.critic is not None and (frozen or parts.value_loss.clip is not None):
            values = self._read(work)
            self._heads.add_values("old_values", work.value_rows, work.trees, values)
        if not (still or parts.fixed_advantages):
            work.stateless = [without_states(tree) for tree in work.trees]
            return
        if values is not None:
            values = self._final(work, values)
            if self.critic is not None:
                with calling_part("algorithm.advantage", parts.advantage):
                    targets = parts.advantage.targets(work.trees, list(values.values()))
                by_tree = dict(enumerate(targets))
                self.critic.add_values("targets", work.value_rows, work.trees, by_tree)
        work.fixed = self._with_advantages(work, range(len(work.trees)), values)

    def _read(self, work: UpdateState) -> dict[int, AgentValues]:
        """Computes the values of all trees with the current weights, without gradient."""
        rows = work.value_rows
        if self.critic is not None and self.critic.critic.read_once:
            rows = self.critic.rows(work.trees, self.actors.learns, work.baselines, training=False)
        return self._heads.read(work.trees, rows, range(len(work.trees)))

    def _final(self, work: UpdateState, values: dict[int, AgentValues]) -> dict[int, AgentValues]:
        """Returns the values from which advantages are computed: with item means, the mean plus a
        share of the network's residual. The first values of a tree are compared with its returns,
        because no step on this tree has been taken yet."""
        critic, baselines = work.parts.critic, work.baselines
        if critic is not None and baselines is not None:
            trees = [work.trees[number] for number in values]
            means = [baselines[number] for number in values]
            shares = [work.shares[number] for number in values]
            read = list(values.values())
            if work.values.keys().isdisjoint(values):
                self.item_means.compare(critic, trees, read, means)
            values = dict(zip(values, scaled(critic, trees, read, means, shares), strict=True))
        for number, by_agent in values.items():
            work.values.setdefault(number, by_agent)
        return values

    def _with_advantages(
        self, work: UpdateState, numbers: Sequence[int], values: Mapping[int, AgentValues] | None
    ) -> Rows:
        """Returns the actors' rows of the trees `numbers` with advantages, and with value targets
        if the value heads are on the actors."""
        parts, batch = work.parts, [work.trees[number] for number in numbers]
        read = None if values is None else list(values.values())
        with calling_part("algorithm.advantage", parts.advantage):
            advantages = parts.advantage(batch, read)
        advantages = equal_groups(advantages, parts.advantage, batch, self.actors.model_of)
        work.advantages.append((batch, advantages, read))
        rows = with_advantages(work.rows, numbers, advantages)
        if self.actors.critic is not None and read is not None:
            with calling_part("algorithm.advantage", parts.advantage):
                targets = dict(zip(numbers, parts.advantage.targets(batch, read), strict=True))
            self.actors.add_values("targets", rows, work.trees, targets)
        return rows

    def _minibatch(
        self,
        work: UpdateState,
        models: Collection[str],
        numbers: Sequence[int],
        *,
        critic: Critics | None = None,
    ) -> Steps:
        """Take one step of the critic, then one step of each of the actors `models`, on the trees
        `numbers`."""
        parts, ready = work.parts, work.fixed
        step = partial(fit, done=work.done, together=self.together)
        steps: Steps = {}
        minibatches: Minibatches = {}
        # 9
        if critic is not None:
            episodes = None
            if ready is None:
                episodes = {number: work.stateless[number] for number in numbers}
            objective = partial(
                critic.objective, parts.advantage, parts.value_loss, episodes=episodes
            )
            minibatches = critic.minibatches(work.value_rows, numbers, objective)
        # 10
        if ready is None:
            steps, minibatches = step(minibatches), {}
            values = self._heads.read(work.trees, work.value_rows, numbers, steps)
            ready = self._with_advantages(work, numbers, self._final(work, values))
        # 11
        rows = {name: ready[name] for name in models}
        minibatches |= self.actors.minibatches(rows, numbers, partial(_actor_objective, parts))
        return {**steps, **step(minibatches)}

    def _train(self, epochs: Epochs, minibatch: Callable[[Sequence[int]], Steps]) -> list[Steps]:
        """Call `minibatch` for every minibatch of every epoch, until an epoch exceeds
        `target_kl`."""
        taken: list[Steps] = []
        for minibatches in epochs:
            of_epoch = [minibatch(numbers) for numbers in minibatches]
            taken += of_epoch
            divergences = [
                fitted.accumulated.metrics["approx_kl"]
                for steps in of_epoch
                for fitted in steps.values()
                if "approx_kl" in fitted.accumulated.metrics
            ]
            limit = self.target_kl
            if limit is not None and divergences and float(np.mean(divergences)) > limit:
                break
        return taken

    def _refresh_references(self, iteration: int) -> None:
        """Copy the policies into the references every `loss.reference_update_every` iterations."""
        refresh = self.parts.loss.reference_update_every
        if refresh is not None and (iteration + 1) % refresh == 0:
            for reference in self.references.values():
                reference.copy_weights()

    def _told(self, work: UpdateState, iteration: int) -> dict[str, float]:
        """Returns the metrics of an update and sets `critic_line`."""
        critic = work.parts.critic
        self.critic_line = None
        if critic is not None:
            self.critic_line = critic_line(
                critic, iteration + 1, work.values, work.trees, work.means
            )
        _note_left_out(work.parts, work.trees)
        return update_metrics(work)


def _actor_objective(parts: Parts, rows: Sequence[Row]) -> ActorObjective | None:
    """Returns the objective of an actor's minibatch; None if it has no rows."""
    return ActorObjective.of(parts.loss, parts.value_loss, rows) if rows else None


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
