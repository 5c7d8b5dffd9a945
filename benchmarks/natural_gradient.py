"""Sampled natural gradient on tables: the reference for learning curves.

    python benchmarks/natural_gradient.py --out benchmarks/results/optima/natural_gradient.json
    python benchmarks/natural_gradient.py --problems dec_tiger --steps 153600 --batch 768 --rate 0.5

With `--out` the curves are kept where the report of optima.py looks for them.

Every private history has logits of its own, so nothing is shared and nothing saturates by accident.
For such a softmax table the natural gradient of J is the advantage itself (Kakade 2001): each agent
moves the logits of the private histories that a batch has visited by `rate` times
mean(G | h_i, a) - mean(G | h_i), G being the team's return from there on. Values are exact.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from _optima_problems import PROBLEMS, references

from colearn.registry import task_class
from colearn.report.show import show_estimate
from colearn.statistics.over_seeds import estimate
from colearn.tabular.exact_value import evaluate
from colearn.tabular.histories import JointHistories
from colearn.tabular.model import Array, TabularModel

LEAST = 12_800
"""Joint actions of a run."""

Tables = dict[str, list[Array]]
"""By agent and turn: logits or probabilities, shape [private histories, |A_i|]."""


@dataclass(frozen=True)
class Visits:
    """A batch at one turn, an entry for each episode."""

    histories: Array
    actions: tuple[Array, ...]
    rewards: Array


class Sampler:
    """Episodes of a tabular model under a joint policy given as tables, many at once."""

    def __init__(self, histories: JointHistories) -> None:
        self.histories, self.model = histories, histories.model
        joint_actions, _, joint_observations = self.model.observation.shape
        self._shape = (joint_actions, joint_observations)
        self._keys = [
            np.ravel_multi_index(
                (turn.parent, turn.joint_action, turn.joint_observation),
                (int(turn.parent.max()) + 1, *self._shape),
            )
            for turn in histories.turns
        ]

    def play(self, policy: Mapping[str, Sequence[Array]], count: int, rng: Any) -> list[Visits]:
        model, visits = self.model, []
        at = np.zeros(count, dtype=np.int64)
        states = rng.choice(len(model.states), size=count, p=model.start)
        for number, turn in enumerate(self.histories.turns):
            actions = tuple(
                _draw(policy[agent][number][turn.private[i][at]], rng)
                for i, agent in enumerate(model.agents)
            )
            joint = np.ravel_multi_index(actions, model.action_shape)
            after = _draw(model.transition[joint, states], rng)
            seen = _draw(model.observation[joint, after], rng)
            visits.append(Visits(at, actions, model.reward[joint, states, after, seen]))
            states = after
            if number + 1 < self.histories.horizon:
                keys = self._keys[number + 1]
                wanted = np.ravel_multi_index((at, joint, seen), (int(at.max()) + 1, *self._shape))
                at = np.searchsorted(keys, wanted)
        return visits


def _draw(rows: Array, rng: Any) -> Array:
    """One number from each row of probabilities."""
    edges = rows.cumsum(axis=1)
    edges /= edges[:, -1:]
    return (rng.random(len(rows))[:, None] > edges).sum(axis=1)


def softmax(logits: Tables) -> Tables:
    policy: Tables = {}
    for agent, tables in logits.items():
        powers = [np.exp(table - table.max(axis=1, keepdims=True)) for table in tables]
        policy[agent] = [power / power.sum(axis=1, keepdims=True) for power in powers]
    return policy


def advantages(histories: JointHistories, batch: Sequence[Visits]) -> Tables:
    """mean(G | h_i, a) - mean(G | h_i) by agent, turn, private history and action; 0 where the
    batch holds no such action."""
    model: TabularModel = histories.model
    following = np.zeros(len(batch[0].rewards))
    advantages_by_agent: Tables = {agent: [] for agent in model.agents}
    for number in reversed(range(histories.horizon)):
        turn, visits = histories.turns[number], batch[number]
        following = visits.rewards + following
        for i, agent in enumerate(model.agents):
            shape = (turn.counts[i], model.action_shape[i])
            private, action = turn.private[i][visits.histories], visits.actions[i]
            sums, counts = np.zeros(shape), np.zeros(shape)
            np.add.at(sums, (private, action), following)
            np.add.at(counts, (private, action), 1.0)
            baseline = sums.sum(axis=1) / np.maximum(counts.sum(axis=1), 1.0)
            means = sums / np.maximum(counts, 1.0)
            advantages_by_agent[agent].insert(
                0, np.where(counts > 0, means - baseline[:, None], 0.0)
            )
    return advantages_by_agent


def learn(
    histories: JointHistories, *, seed: int, steps: int, batch: int, rate: float, scale: float
) -> tuple[list[int], list[float]]:
    """Joint actions used and exact values, in the problem's own rewards.

    `batch` counts joint actions; `rate` is per unit of the scaled reward.
    """
    model, rng = histories.model, np.random.default_rng(seed)
    sampler = Sampler(histories)
    logits: Tables = {
        agent: [np.zeros((turn.counts[i], model.action_shape[i])) for turn in histories.turns]
        for i, agent in enumerate(model.agents)
    }
    episodes = max(1, batch // histories.horizon)
    used, at, values = 0, [0], [evaluate(histories, softmax(logits)).value]
    while used < steps:
        advantages_by_agent = advantages(histories, sampler.play(softmax(logits), episodes, rng))
        for agent, tables in advantages_by_agent.items():
            for table, direction in zip(logits[agent], tables, strict=True):
                table += rate * scale * direction
        used += episodes * histories.horizon
        at.append(used)
        values.append(round(evaluate(histories, softmax(logits)).value, 4))
    return at, values


def joint_actions_until(at: Sequence[int], values: Sequence[float], level: float) -> int | None:
    """When the value first reaches `level`; None where it never does."""
    return next((a for a, v in zip(at, values, strict=True) if v >= level), None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--steps", type=int, help="joint actions; as in optima.py, 12,800 at least")
    parser.add_argument("--batch", type=int, help="joint actions per step; as in optima.py")
    parser.add_argument("--rate", type=float, default=1.0)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    results: dict[str, Any] = {}
    for name in options.problems:
        problem = PROBLEMS[name]
        task: Any = task_class("dpomdp")(**problem.task)
        histories = JointHistories(task.model, problem.horizon)
        settings = {
            "steps": options.steps or max(problem.steps, LEAST),
            "batch": options.batch or problem.actions,
            "rate": options.rate,
        }
        runs = [
            learn(histories, seed=seed, scale=problem.scale, **settings)
            for seed in range(options.first_seed, options.first_seed + options.seeds)
        ]
        final = estimate([values[-1] for _, values in runs])
        optimum = references(problem)["optimum"]
        steps_to_90 = [joint_actions_until(at, values, 0.9 * optimum) for at, values in runs]
        reached = sorted(at for at in steps_to_90 if at is not None)
        until = (
            f"; 90% after {reached[len(reached) // 2]} in {len(reached)} runs" if reached else ""
        )
        print(f"{name:10} {settings}: {show_estimate(final)} of {optimum:.4g}{until}", flush=True)
        results[name] = {
            **settings,
            "optimum": optimum,
            "runs": [{"joint_actions": at, "values": values} for at, values in runs],
        }
    if options.out is not None:
        if options.out.exists():  # other problems, asked for earlier
            results = {**json.loads(options.out.read_text()), **results}
        options.out.write_text(json.dumps(results) + "\n")


if __name__ == "__main__":
    main()
