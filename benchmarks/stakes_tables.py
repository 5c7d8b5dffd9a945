"""Private stakes on tables: joint actions to 90% per baseline, where gradient noise is the limit.

    python benchmarks/stakes_tables.py --out benchmarks/results/stakes_tables.json

The game of benchmarks/stakes.py with one logit per stake and key of each agent, so that the policy
represents everything and the noise of the gradient is all that separates the methods. Each method
takes the learning rate that is best for it on tuning runs; the runs reported are others. Critics
are exact, or linear in the one-hot inputs that theirs may read: the agent's own stake and key (DC),
everybody's (CC), everybody's and the answers (counterfactual). The linear ones are refitted before
every update by ridge regression to the joint actions of the updates before.

`predicted` is Var(g) / |E g|^2 at the uniform policy with exact critics: the number of joint
actions at which the noise of the estimate has the norm of the gradient.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colearn.statistics.over_seeds import estimate

Array = NDArray[np.float64]

METHODS = ("none", "magrpo", "collm_dc", "collm_cc", "coma")
CRITICS = ("exact", "linear", "linear, pretrained")
GROUP = 4
"""Candidates per item of `magrpo`, each a joint action."""
ALTERNATIVES = 4
"""Further answers per agent that `coma` reads."""
RATES = tuple(0.04 * 2.0**power for power in range(0, 10))
WINDOW = 512
"""Joint actions that a linear critic is fitted to."""
RIDGE = 1.0
PRETRAINING = 512
"""Joint actions of the start policy that a pretrained critic has seen; counted apart."""


@dataclass(frozen=True)
class Game:
    """n agents, the stakes that each of them may draw, and the joint actions of an update."""

    agents: int
    stakes: tuple[float, ...]
    batch: int

    @property
    def contexts(self) -> int:
        """Stake and key of one agent."""
        return 2 * len(self.stakes)


def share(game: Game, logits: Array) -> Array:
    """Exact share of the largest expected reward, by run; logits [runs, agents, contexts]."""
    stakes = np.tile(np.asarray(game.stakes), 2)
    right = 1.0 / (1.0 + np.exp(-logits))
    return np.asarray((right * stakes).mean(axis=2).mean(axis=1) / stakes.mean())


class Linear:
    """Ridge regression of the return on features, one fit per run, refitted before each update."""

    def __init__(self, runs: int, features: int) -> None:
        self.gram = np.zeros((runs, features, features))
        self.moment = np.zeros((runs, features))
        self.kept: list[tuple[Array, Array]] = []
        self.weights = np.zeros((runs, features))

    def read(self, x: Array) -> Array:
        """Values of features [runs, rows, features]."""
        return np.einsum("rbf,rf->rb", x, self.weights)

    def add(self, x: Array, returns: Array) -> None:
        """Fit to the last `WINDOW` joint actions, these included."""
        self.kept.append((x, returns))
        self._count(x, returns, 1.0)
        while sum(old.shape[1] for old, _ in self.kept[1:]) >= WINDOW:
            self._count(*self.kept.pop(0), -1.0)
        ridge = RIDGE * np.eye(x.shape[2])
        self.weights = np.linalg.solve(self.gram + ridge, self.moment[..., None])[..., 0]

    def _count(self, x: Array, returns: Array, sign: float) -> None:
        self.gram += sign * np.einsum("rbf,rbg->rfg", x, x)
        self.moment += sign * np.einsum("rbf,rb->rf", x, returns)


class Learner:
    """Independent runs of one method, vectorised: policy gradient with Adam or plain steps."""

    def __init__(
        self, game: Game, method: str, critic: str, rate: float, runs: int, seed: int, adam: bool
    ) -> None:
        self.game, self.method, self.critic, self.rate = game, method, critic, rate
        self.runs, self.adam = runs, adam
        self.rng = np.random.default_rng(seed)
        n, contexts = game.agents, game.contexts
        self.logits = np.zeros((runs, n, contexts))
        self.first, self.second, self.updates = 0.0, 0.0, 0
        self.joint_actions = 0
        self.explained: list[float] = []
        width = {"collm_dc": contexts, "collm_cc": n * contexts, "coma": 2 * n * contexts}
        self.fits: list[Linear] = []
        if critic != "exact" and method in width:
            self.fits = [
                Linear(runs, width[method]) for _ in range(n if method == "collm_dc" else 1)
            ]
        if critic == "linear, pretrained" and self.fits:
            for _ in range(PRETRAINING // game.batch):
                self._fit(*self._draw(game.batch))
                self.joint_actions += game.batch

    def update(self) -> None:
        """One batch of joint actions, one step; the critic is fitted after the policy has moved."""
        game = self.game
        context, right = self._draw(game.batch)
        reward = self._reward(context, right)
        advantage = self._advantage(context, right, reward)
        score = right - self._chance(context)
        slope = np.zeros_like(self.logits)
        where = np.nonzero(np.ones_like(context, dtype=bool))
        np.add.at(slope, (where[0], where[2], context[where]), (advantage * score)[where])
        self._step(slope / game.batch)
        self.joint_actions += game.batch
        if self.fits:
            self._fit(context, right)

    def _draw(self, batch: int) -> tuple[NDArray[np.int64], Array]:
        """Contexts and right answers, shape [runs, batch, agents]; a group shares its item."""
        size = GROUP if self.method == "magrpo" else 1
        shape = (self.runs, batch // size, self.game.agents)
        context = self.rng.integers(self.game.contexts, size=shape).repeat(size, axis=1)
        right = self.rng.random(context.shape) < self._chance(context)
        return context, right.astype(float)

    def _chance(self, context: NDArray[np.int64]) -> Array:
        """Each agent's probability of its right answer."""
        by_run = np.take_along_axis(self.logits, context.transpose(0, 2, 1), axis=2)
        return np.asarray(1.0 / (1.0 + np.exp(-by_run.transpose(0, 2, 1))))

    def _stakes(self, context: NDArray[np.int64]) -> Array:
        return np.asarray(np.tile(np.asarray(self.game.stakes), 2)[context])

    def _reward(self, context: NDArray[np.int64], right: Array) -> Array:
        return np.asarray((self._stakes(context) * right).sum(axis=2))

    def _advantage(self, context: NDArray[np.int64], right: Array, reward: Array) -> Array:
        """G less the method's baseline, shape [runs, batch, agents]."""
        if self.method == "none":
            return np.broadcast_to(reward[..., None], context.shape)
        if self.method == "magrpo":
            groups = reward.reshape(self.runs, -1, GROUP)
            return np.broadcast_to(
                (groups - groups.mean(axis=2, keepdims=True)).reshape(reward.shape)[..., None],
                context.shape,
            )
        if self.method == "coma":
            return reward[..., None] - self._counterfactual(context, right)
        values = self._values(context)
        self._explain(reward, values)
        return reward[..., None] - values

    def _explain(self, reward: Array, values: Array) -> None:
        """Explained variance of the returns, pooled over runs; values [runs, batch, agents]."""
        error = (reward[..., None] - values).var(axis=1).mean()
        self.explained.append(float(1 - error / max(reward.var(axis=1).mean(), 1e-9)))

    def _values(self, context: NDArray[np.int64]) -> Array:
        """V of the joint history (CC) or of each agent's own (DC), shape [runs, batch, agents]."""
        if self.fits:
            return np.stack(
                [f.read(x) for f, x in zip(self.fits, self._inputs(context), strict=True)]
                * (1 if self.method == "collm_dc" else self.game.agents),
                axis=2,
            )
        own = self._stakes(context) * self._chance(context)
        if self.method == "collm_cc":
            return np.broadcast_to(own.sum(axis=2, keepdims=True), own.shape)
        stakes = np.tile(np.asarray(self.game.stakes), 2)
        means = (stakes / (1.0 + np.exp(-self.logits))).mean(axis=2)
        return np.asarray(own + (means.sum(axis=1, keepdims=True) - means)[:, None])

    def _counterfactual(self, context: NDArray[np.int64], right: Array) -> Array:
        """mean_k Q(h, a_-i, a_i^k) of `ALTERNATIVES` draws from the policy."""
        chance = self._chance(context)
        if not self.fits:
            others = self._reward(context, right)[..., None] - self._stakes(context) * right
            mean = self.rng.binomial(ALTERNATIVES, chance) / ALTERNATIVES
            self.explained.append(1.0)
            return np.asarray(others + self._stakes(context) * mean)
        executed = self.fits[0].read(self._pairs(context, right))
        reward = self._reward(context, right)
        self._explain(reward, executed[..., None])
        baseline = np.empty(context.shape)
        for agent in range(self.game.agents):
            mean = self.rng.binomial(ALTERNATIVES, chance[..., agent]) / ALTERNATIVES
            readings = []
            for answer in (0.0, 1.0):
                other = right.copy()
                other[..., agent] = answer
                readings.append(self.fits[0].read(self._pairs(context, other)))
            baseline[..., agent] = (1 - mean) * readings[0] + mean * readings[1]
        return baseline

    def _inputs(self, context: NDArray[np.int64]) -> list[Array]:
        hot = np.eye(self.game.contexts)[context]
        if self.method == "collm_dc":
            return [hot[:, :, agent] for agent in range(self.game.agents)]
        return [hot.reshape(*context.shape[:2], -1)]

    def _pairs(self, context: NDArray[np.int64], right: Array) -> Array:
        pair = 2 * context + right.astype(np.int64)
        return np.eye(2 * self.game.contexts)[pair].reshape(*context.shape[:2], -1)

    def _fit(self, context: NDArray[np.int64], right: Array) -> None:
        reward = self._reward(context, right)
        coma = self.method == "coma"
        inputs = [self._pairs(context, right)] if coma else self._inputs(context)
        for fit, x in zip(self.fits, inputs, strict=True):
            fit.add(x, reward)

    def _step(self, slope: Array) -> None:
        self.updates += 1
        if not self.adam:
            self.logits += self.rate * slope
            return
        self.first = 0.9 * self.first + 0.1 * slope
        self.second = 0.99 * self.second + 0.01 * slope**2
        mean = self.first / (1 - 0.9**self.updates)
        square = self.second / (1 - 0.99**self.updates)
        self.logits += self.rate * mean / (np.sqrt(square) + 1e-8)


def joint_actions_to(
    game: Game, method: str, critic: str, rate: float, runs: int, seed: int, adam: bool, most: int
) -> tuple[Array, float]:
    """Joint actions until two updates in a row are at 90%, inf beyond `most`; mean explained
    variance."""
    learner = Learner(game, method, critic, rate, runs, seed, adam)
    reached, before = np.full(runs, np.inf), np.zeros(runs, dtype=bool)
    while learner.joint_actions < most and not np.isfinite(reached).all():
        learner.update()
        above = share(game, learner.logits) >= 0.9
        reached[above & before & ~np.isfinite(reached)] = learner.joint_actions
        before = above
    told = learner.explained
    return reached, float(np.mean(told)) if told else float("nan")


def predicted(game: Game, method: str, draws: int = 200_000) -> float:
    """Var(g) / |E g|^2 of one joint action at the uniform policy, exact critics."""
    learner = Learner(game, method, "exact", 0.0, 1, 0, adam=False)
    context, right = learner._draw(draws)
    advantage = learner._advantage(context, right, learner._reward(context, right))
    gradient = advantage * (right - 0.5)
    noise, signal = 0.0, 0.0
    size = GROUP if method == "magrpo" else 1
    for agent, seen in product(range(game.agents), range(game.contexts)):
        one = np.where(context[0, :, agent] == seen, gradient[0, :, agent], 0.0)
        signal += one.mean() ** 2
        noise += size * one.reshape(-1, size).mean(axis=1).var()
    return noise / signal


def measure(game: Game, options: argparse.Namespace, adam: bool) -> list[dict[str, Any]]:
    """A row per method and critic: best rate, joint actions to 90% and their interval."""
    rows = []
    for method, critic in product(METHODS, CRITICS):
        if method in ("none", "magrpo") and critic != "exact":
            continue
        started = time.process_time()
        tuned = {}
        for rate in RATES:
            tuning, _ = joint_actions_to(
                game, method, critic, rate, options.tuning, 1, adam, options.most
            )
            tuned[rate] = float(np.minimum(tuning, options.most).mean())
        rate = min(tuned, key=lambda one: (tuned[one], one))
        reached, told = joint_actions_to(
            game, method, critic, rate, options.seeds, 2, adam, options.most
        )
        pretraining = PRETRAINING if critic == "linear, pretrained" else 0
        mean = estimate((np.minimum(reached, options.most) - pretraining).tolist())
        assert mean is not None
        rows.append(
            {
                **asdict(game),
                "adam": adam,
                "method": method,
                "critic": None if method in ("none", "magrpo") else critic,
                "predicted": float(predicted(game, method)),
                "rate": rate,
                "at_edge": rate in (RATES[0], RATES[-1]),
                "pretraining": pretraining,
                "mean": [mean.mean, mean.low, mean.high],
                "median": float(np.median(reached)) - pretraining,
                "reached": int(np.isfinite(reached).sum()),
                "seeds": options.seeds,
                "explained_variance": told,
                "cpu_seconds": round(time.process_time() - started, 1),
            }
        )
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seeds", type=int, default=32)
    parser.add_argument("--tuning", type=int, default=16)
    parser.add_argument("--most", type=int, default=40_000)
    parser.add_argument("--agents", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--batches", type=int, nargs="+", default=[8])
    parser.add_argument("--stakes", type=float, nargs="+", default=[1.0, 9.0])
    parser.add_argument("--optimiser", choices=("adam", "plain"), default="plain")
    options = parser.parse_args()
    rows = []
    for agents, batch in product(options.agents, options.batches):
        game = Game(agents, tuple(options.stakes), batch)
        rows += measure(game, options, options.optimiser == "adam")
    if options.out:
        options.out.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
