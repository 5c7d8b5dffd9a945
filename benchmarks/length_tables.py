"""A long episode paid at its end, on tables: TD(0) with exact, given and learned critics; groups.

    python benchmarks/length_tables.py --out benchmarks/results/critic_worth/length_tables.json

H turns, two agents. At each turn each agent sees a key of its own and the progress so far; if both
give the right one of two answers for their keys, the progress rises by one. The team earns the
progress when the episode ends. One logit for each agent, turn and key, so that the noise of the
gradient is all that separates the methods. Each method takes the learning rate that is best for it
on tuning runs; the runs reported are others.

Critics read the joint history: V is linear in the progress and in the keys, at each turn apart, so
that an exact one exists. Learned ones are refitted before every update by ridge regression to the
episodes before. A given one is fitted to all episodes of other runs that learned one themselves;
it is frozen, or a prior of the refits.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colearn.statistics.over_seeds import estimate

Array = NDArray[np.float64]

GROUP = 8
"""Episodes of an update, which share their first keys: the groups of `groups`."""
RATES = tuple(0.08 * 2.0**power for power in range(0, 14))
WINDOW = 16
"""Updates that a critic is fitted to."""
RIDGE = 1.0
METHODS = (
    ("none", 1.0, None),
    ("groups", 1.0, None),
    ("V", 1.0, "exact"),
    ("V", 1.0, "learned"),
    ("V", 0.0, "exact"),
    ("V", 0.0, "learned"),
    ("V", 0.0, "given, frozen"),
    ("V", 0.0, "given, trained on"),
)
"""Baseline, lambda, critic."""


@dataclass
class Played:
    """One update's episodes; shapes [runs, GROUP, turns, 2] and [runs, GROUP, turns]."""

    keys: NDArray[np.int64]
    right: Array
    progress: Array
    """Before each turn."""
    success: Array

    @property
    def returns(self) -> Array:
        """[runs, GROUP]"""
        return np.asarray(self.success.sum(axis=2))


class Critic:
    """Ridge regression of the return at each turn on the keys of both agents and the progress."""

    def __init__(self, runs: int, turns: int, prior: Array | None) -> None:
        self.weights = np.zeros((runs, turns, 5)) if prior is None else prior.copy()
        self.prior = self.weights.copy()
        self.kept: list[tuple[Array, Array]] = []

    @staticmethod
    def inputs(played: Played) -> Array:
        """[runs, GROUP, turns, 5]"""
        pair = 2 * played.keys[..., 0] + played.keys[..., 1]
        return np.concatenate([np.eye(4)[pair], played.progress[..., None]], axis=3)

    def read(self, played: Played) -> Array:
        """[runs, GROUP, turns]"""
        return np.einsum("rgtf,rtf->rgt", self.inputs(played), self.weights)

    def fit(self, played: Played, window: int | None = WINDOW) -> None:
        """Fit to the last `window` updates, these included; None: to all."""
        x = self.inputs(played)
        self.kept.append(
            (
                np.einsum("rgtf,rgth->rtfh", x, x),
                np.einsum("rgtf,rg->rtf", x, played.returns),
            )
        )
        if window is not None:
            del self.kept[:-window]
        gram = sum(one for one, _ in self.kept) + RIDGE * np.eye(5)
        moment = sum(one for _, one in self.kept) + RIDGE * self.prior
        self.weights = np.linalg.solve(gram, moment[..., None])[..., 0]


class Team:
    """Independent runs of one method, vectorised, with plain gradient steps."""

    def __init__(
        self, turns: int, method: tuple[str, float, str | None], rate: float, runs: int, seed: int
    ) -> None:
        self.turns, self.rate, self.runs = turns, rate, runs
        self.baseline, self.lam, self.kind = method
        self.rng = np.random.default_rng(seed)
        self.logits = np.zeros((runs, turns, 2, 2))  # of turn, agent and key
        prior = given(turns, runs) if self.kind is not None and "given" in self.kind else None
        self.critic = Critic(runs, turns, prior)
        self.joint_actions = 0

    @property
    def chances(self) -> Array:
        """Of the right answer, [runs, turns, 2, 2]."""
        return np.asarray(1.0 / (1.0 + np.exp(-self.logits)))

    @property
    def share(self) -> Array:
        """Exact share of the largest return, by run."""
        return np.asarray(self.chances.mean(axis=3).prod(axis=2).mean(axis=1))

    def update(self) -> None:
        played = self._play()
        after = self._advantages(played)
        score = played.right - self._chance_of(played.keys)
        slope = np.zeros_like(self.logits)
        run, _, turn, agent = np.indices(played.keys.shape)
        np.add.at(slope, (run, turn, agent, played.keys), after[..., None] * score)
        self.logits += self.rate * slope / GROUP
        self.joint_actions += GROUP * self.turns
        if self.kind in ("learned", "given, trained on"):
            self.critic.fit(played)

    def _play(self) -> Played:
        keys = self.rng.integers(2, size=(self.runs, GROUP, self.turns, 2))
        keys[:, :, 0] = keys[:, :1, 0]
        right = (self.rng.random(keys.shape) < self._chance_of(keys)).astype(float)
        success = right.prod(axis=3)
        return Played(keys, right, success.cumsum(axis=2) - success, success)

    def _chance_of(self, keys: NDArray[np.int64]) -> Array:
        run, _, turn, agent = np.indices(keys.shape)
        return np.asarray(self.chances[run, turn, agent, keys])

    def _advantages(self, played: Played) -> Array:
        """[runs, GROUP, turns]"""
        returns = played.returns[..., None]
        if self.baseline == "none":
            return np.broadcast_to(returns, played.progress.shape)
        if self.baseline == "groups":
            return np.broadcast_to(
                returns - returns.mean(axis=1, keepdims=True), played.progress.shape
            )
        values = self._exact(played) if self.kind == "exact" else self.critic.read(played)
        if self.lam == 1.0:
            return np.asarray(returns - values)
        following = np.concatenate([values[..., 1:], returns], axis=2)
        return np.asarray(following - values)

    def _exact(self, played: Played) -> Array:
        later = self.chances.mean(axis=3).prod(axis=2)  # [runs, turns], before keys are seen
        later = later[:, ::-1].cumsum(axis=1)[:, ::-1] - later
        now = self._chance_of(played.keys).prod(axis=3)
        return np.asarray(played.progress + now + later[:, None])


_GIVEN: dict[tuple[int, int], Array] = {}


def given(turns: int, runs: int) -> Array:
    """Weights of critics fitted to all episodes of other runs, which learned their own."""
    if (turns, runs) not in _GIVEN:
        team = Team(turns, ("V", 0.0, "learned"), 1.28, runs, 900)
        whole = Critic(runs, turns, None)
        for _ in range(100):
            state = team.rng.bit_generator.state
            played = team._play()
            team.rng.bit_generator.state = state  # the update plays the same episodes
            whole.fit(played, window=None)
            team.update()
        _GIVEN[turns, runs] = whole.weights
    return _GIVEN[turns, runs]


def joint_actions_to(
    turns: int, method: tuple[str, float, str | None], rate: float, runs: int, seed: int, most: int
) -> Array:
    """Joint actions until two updates in a row are at 90%; inf beyond `most`."""
    team = Team(turns, method, rate, runs, seed)
    reached, before = np.full(runs, np.inf), np.zeros(runs, dtype=bool)
    while team.joint_actions < most and not np.isfinite(reached).all():
        team.update()
        above = team.share >= 0.9
        reached[above & before & ~np.isfinite(reached)] = team.joint_actions
        before = above
    return reached


def measure(turns: int, method: tuple[str, float, str | None], most: int) -> dict[str, Any]:
    tuned = {
        rate: float(np.minimum(joint_actions_to(turns, method, rate, 16, 1, most), most).mean())
        for rate in RATES
    }
    rate = min(tuned, key=lambda one: (tuned[one], one))
    reached = joint_actions_to(turns, method, rate, 32, 2, most)
    mean = estimate(np.minimum(reached, most).tolist())
    assert mean is not None
    return {
        "turns": turns,
        "baseline": method[0],
        "lam": method[1],
        "critic": method[2],
        "rate": rate,
        "at_edge": rate in (RATES[0], RATES[-1]),
        "mean": [mean.mean, mean.low, mean.high],
        "median": float(np.median(reached)),
        "reached": int(np.isfinite(reached).sum()),
        "runs": len(reached),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--turns", type=int, nargs="+", default=[8, 16])
    parser.add_argument("--most", type=int, default=80_000)
    options = parser.parse_args()
    rows = []
    for turns in options.turns:
        for method in METHODS:
            rows.append(measure(turns, method, options.most))
            print(rows[-1], flush=True)
    if options.out:
        options.out.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
