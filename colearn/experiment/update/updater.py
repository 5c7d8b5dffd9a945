"""Updater: epochs of minibatches of joint transitions through critic and actors.

It composes parts and learners, independent of algorithm and device.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from colearn.advantage.expectile import expectile
from colearn.agents import Voice
from colearn.contract import (
    AgentValues,
    Episodes,
    Follower,
    Learner,
    NetworkKey,
    Objective,
    Parts,
    Prepared,
)
from colearn.contract.host import Together, one_by_one
from colearn.learn.minibatch import Pace

from .actor_rows import ActorRows, Ready, Trees
from .critics import CriticTrainer
from .objective import ActorObjective
from .random_rewards import rewards_are_random
from .similarity import similarity_metrics


@dataclass(slots=True)
class Updater:
    """Converts trees into optimiser steps. `voices` are keyed by player; an episode's cast maps
    agents to players, and only trained models enter an update.

    Order within a minibatch (Alg. 1, lines 17-24): values and TD targets from the current critic,
    the critic's step, advantages from the values before it, and each actor's gradient and step. No
    gradient depends on another model's step, so only one model's gradients are in memory.
    """

    parts: Parts
    voices: Mapping[str, Voice]
    actors: Mapping[str, Learner]
    """Learners of the trained models, by model name."""
    critic: CriticTrainer | None
    shared_head: bool
    """Whether the value heads are on the actors, whose rows then have the marks."""
    references: Mapping[str, Follower]
    """Reference policies with separate weights, by model name; without one, the base without its
    adapter is the reference."""
    seed: int
    epochs: int
    minibatch: int | None
    token_budget: int
    together: Together = one_by_one
    """The host's runner for calls on several models."""
    target_kl: float | None = None
    paces: Mapping[str, Pace] = field(default_factory=dict)
    """Per-model epochs and minibatch size. These actors' advantages must be computed once, at
    rollout time: they are in no joint minibatch for which a critic could recompute them."""
    critic_alone: int = 0
    """The first iterations, in which the actors keep their weights."""
    random_rewards: bool = False
    """Whether rewards were found to be random, this iteration's included; saved in checkpoints.
    Stays False if no part asks (`if_deterministic`)."""
    changing: Callable[[], None] = lambda: None
    """Called before each change of a model's state."""

    def update(
        self, trees: Trees, iteration: int, done: float = 0.0, sampled_at: float | None = None
    ) -> dict[str, float]:
        """Update all models; returns metrics, means over the iteration's optimiser steps.

        `optimizer_steps` counts joint steps; a model with its own pace is counted under its name.
        `done` is the used fraction of the training budget, for schedules; `sampled_at` that which
        set the temperatures of `trees`; None: `done`.
        Errors: FloatingPointError naming the learner if a loss or gradient is not finite.
        """
        now = self._parts_at(trees, done)
        joint = Pace(self.epochs, self.minibatch).cuts(trees, self.seed, iteration)
        if self.critic is None and not self.actors.keys() - self.paces.keys():
            joint = []  # every actor has its own pace
        actors = {} if iteration < self.critic_alone else self.actors
        paces = {name: pace for name, pace in self.paces.items() if name in actors}
        alone = {name: pace.cuts(trees, self.seed, iteration) for name, pace in paces.items()}
        taken = {name: sum(map(len, alone.get(name, joint))) for name in actors}
        rows = ActorRows(trees, self.parts, self.voices, self.actors, self.shared_head)
        rows.build(self.token_budget, done if sampled_at is None else sampled_at)
        moving = {name for name, steps in taken.items() if steps > 1}
        rows.read(moving, self.references, self.together)
        episodes = self.parts.credited(trees)
        if self.parts.critic is not None and self.parts.value_loss.rescale:
            self._rescale(episodes, rows, now.value_loss.expectile)
        if self.critic is not None:
            self.critic.use(now.advantage, now.value_loss)
            self.critic.prepare(trees, lambda tree, agent: rows.model(tree, agent) is not None)
        old_values = self._old_values(rows)
        sums: dict[str, list[float]] = {}
        fixed = None
        frozen = old_values if self.parts.value_loss.frozen_targets else None
        if frozen is not None or not self.parts.advantage.reads:
            if self.critic is not None and frozen is not None:
                self.critic.freeze(episodes, frozen)
            fixed = rows.ready(now, episodes, range(len(trees)), frozen, old_values)
            sums = {key: [value] for key, value in fixed.metrics.items()}
        steps = 0
        for batches in joint:
            moved: list[float] = []
            for numbers in batches:
                metrics = self._step(now, episodes, numbers, rows, old_values, fixed, done, actors)
                joined = (f"{name}/approx_kl" for name in actors if name not in alone)
                moved += [metrics[key] for key in joined if key in metrics]  # of those that train
                for key, value in metrics.items():
                    sums.setdefault(key, []).append(value)
            steps += len(batches)
            if self._far(moved):
                break
        walks: dict[NetworkKey, Callable[[], dict[str, list[float]]]] = {}
        for name, own in alone.items():
            assert fixed is not None, "advantages that change with a joint minibatch"
            walks[NetworkKey("actor", name)] = partial(self._walk, name, own, now, fixed, done)
        for walker, walked in self.together(walks).items() if walks else ():
            sums |= {f"{walker.model}/{metric}": values for metric, values in walked.items()}
        refresh = self.parts.loss.reference_update_every
        if refresh is not None and (iteration + 1) % refresh == 0:
            self.changing()
            for reference in self.references.values():
                reference.follow()
        result = {key: float(np.mean(values)) for key, values in sums.items()}
        result |= similarity_metrics(self.parts.advantage.answer_groups(episodes))
        result["optimizer_steps"] = float(steps)
        if self.parts.if_deterministic:
            result["random_rewards"] = float(self.random_rewards)
        return result

    def _parts_at(self, trees: Trees, done: float) -> Parts:
        """The parts of this update. Randomness found in `trees` counts for their own update."""
        if self.parts.if_deterministic and not self.random_rewards:
            self.random_rewards = rewards_are_random(trees)
        now = self.parts.at(done)
        return now.risk_neutral() if self.random_rewards else now

    def _rescale(self, episodes: Episodes, rows: ActorRows, level: float) -> None:
        """Update every value head's scale from the returns of the agents it values, centred at the
        expectile it is trained to."""
        assert self.parts.critic is not None
        heads: dict[str, tuple[Learner, list[float]]] = {}
        for episode in episodes:
            tree = episode.tree
            for reader, agents in self.parts.critic.readers(tree.agents).items():
                name = rows.model(tree, reader) if self.critic is None else None
                if self.critic is not None:
                    name = self.critic.value_model(reader)
                if name is None:
                    continue
                learner = self.actors[name] if self.critic is None else self.critic.learners[name]
                _, head_returns = heads.setdefault(name, (learner, []))
                for agent in agents:
                    if rows.model(tree, agent) is None:
                        continue  # a rival's returns
                    returns = episode.returns(agent)
                    head_returns += [
                        returns[node.index] for node in tree.nodes if agent in node.actions
                    ]
        for learner, head_returns in heads.values():
            if head_returns:  # possibly none of its agents acted
                self.changing()
                learner.observe(head_returns, expectile(head_returns, level))

    def _far(self, moved: Sequence[float]) -> bool:
        """Whether the mean KL of an epoch exceeds `target_kl`."""
        limit = self.target_kl
        return limit is not None and bool(moved) and float(np.mean(moved)) > limit

    def _walk(
        self,
        name: str,
        epochs: Sequence[Sequence[Sequence[int]]],
        now: Parts,
        ready: Ready,
        done: float,
    ) -> dict[str, list[float]]:
        """Run the epochs of a model with its own pace; returns each metric by step."""
        by_step: dict[str, list[float]] = {"optimizer_steps": [0.0]}
        learner = self.actors[name]
        for batches in epochs:
            moved = []
            for numbers in batches:
                prepared = ready.prepared(name, learner, numbers)
                if not prepared.groups:
                    continue  # none of its actions here has an advantage
                objective = ActorObjective.of(now.loss, now.value_loss, prepared.groups)
                metrics = self._trained(learner, prepared, objective, done)
                by_step["optimizer_steps"][0] += 1.0
                moved.append(metrics.get("approx_kl", 0.0))
                for key, value in metrics.items():
                    by_step.setdefault(key, []).append(value)
            if self._far(moved):
                break
        return by_step

    def _old_values(self, rows: ActorRows) -> list[AgentValues] | None:
        """Values at rollout, if the value loss needs them."""
        settings = self.parts.value_loss
        if self.parts.critic is None or not (settings.frozen_targets or settings.clip is not None):
            return None
        if self.critic is not None:
            return self.critic.read(rows.trees)
        return rows.head_values(range(len(rows.trees)))

    def _step(
        self,
        now: Parts,
        episodes: Episodes,
        numbers: Sequence[int],
        rows: ActorRows,
        old_values: Sequence[AgentValues] | None,
        fixed: Ready | None,
        done: float,
        actors: Mapping[str, Learner],
    ) -> dict[str, float]:
        batch = [episodes[number] for number in numbers]
        old = None if old_values is None else [old_values[number] for number in numbers]
        metrics: dict[str, float] = {}
        values: list[AgentValues] | None = None
        if self.critic is not None:
            values, critic_metrics = self.critic.train(batch, old)
            metrics |= {f"critic/{key}": value for key, value in critic_metrics.items()}
            self.changing()
            steps = {
                NetworkKey("critic", name): partial(learner.step, done)
                for name, learner in self.critic.learners.items()
            }
            for key, stepped in self.together(steps).items():
                metrics |= {f"critic/{key.model}/{name}": v for name, v in stepped.items()}
        elif self.shared_head and fixed is None:
            values = rows.head_values(numbers)
        ready = fixed
        if ready is None:
            ready = rows.ready(now, episodes, numbers, values, old)
            metrics |= ready.metrics
        passes: dict[NetworkKey, Callable[[], dict[str, float]]] = {}
        for name, learner in actors.items():
            if name in self.paces:
                continue
            prepared = ready.prepared(name, learner, numbers)
            if not prepared.groups:
                continue  # none of this model's actions here has an advantage
            objective = ActorObjective.of(now.loss, now.value_loss, prepared.groups)
            passes[NetworkKey("actor", name)] = partial(
                self._trained, learner, prepared, objective, done
            )
        for key, trained in self.together(passes).items():
            metrics |= {f"{key.model}/{name}": value for name, value in trained.items()}
        return metrics

    def _trained(
        self, learner: Learner, prepared: Prepared, objective: Objective, done: float
    ) -> dict[str, float]:
        """One minibatch's gradient and step; returns the metrics of both."""
        metrics = learner.accumulate(prepared, objective).metrics
        self.changing()
        return {**metrics, **learner.step(done)}
