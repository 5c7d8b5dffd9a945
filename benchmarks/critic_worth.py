"""Exact critics on tables: predicted and learned joint actions per baseline, on small Dec-POMDPs.

    python benchmarks/critic_worth.py --problems luck --out benchmarks/results/critic_worth.json
    python benchmarks/critic_worth.py --problems luck lock vault dec_tiger --no-learning

Every private history has logits of its own, and critics are exact for the policy of every update,
so the noise of the gradient is all that separates the baselines. `predicted` is Var(g) / |E g|^2
per joint action at the uniform policy: the joint actions at which the noise of the estimate has
the norm of the gradient. Each baseline learns with the rate that is best for it on tuning seeds;
the seeds reported are others.

Baselines of the return G: none; V_i(h_i), what a decentral critic converges to; V(h) of the joint
history, a central critic; sum_a pi_i(a) Q(h, a_-i, a), the counterfactual one. `td` is TD(0) in
place of G.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from _optima_problems import PROBLEMS, Problem
from natural_gradient import Sampler, Tables, Visits, softmax

from colearn.registry import task_class
from colearn.statistics.over_seeds import estimate
from colearn.tabular.exact_value import ExactEvaluation, evaluate, uniform
from colearn.tabular.histories import JointHistories
from colearn.tabular.model import Array
from colearn.tabular.search import best_joint_policy

BASELINES = ("none", "decentral", "central", "counterfactual", "decentral, td", "central, td")
RATES = tuple(0.004 * 2.0**power for power in range(0, 12))


def gradients(
    histories: JointHistories, exact: ExactEvaluation, policy: Tables, batch: Sequence[Visits]
) -> dict[str, list[list[tuple[Array, Array]]]]:
    """By baseline, turn and agent: the private history of each episode, and the gradient of its
    logits, shape [episodes, |A_i|]."""
    model, horizon = histories.model, histories.horizon
    returns = np.cumsum([visits.rewards for visits in batch][::-1], axis=0)[::-1]
    by_baseline: dict[str, list[list[tuple[Array, Array]]]] = {name: [] for name in BASELINES}
    for t in range(horizon):
        turn, visits = histories.turns[t], batch[t]
        at, after = visits.histories, None if t + 1 == horizon else batch[t + 1].histories
        q = exact.joint_action_values[t].reshape(-1, *model.action_shape)[at]
        rows: dict[str, list[tuple[Array, Array]]] = {name: [] for name in BASELINES}
        for i, agent in enumerate(model.agents):
            private, action = turn.private[i][at], visits.actions[i]
            chances = policy[agent][t][private]
            by_others = np.moveaxis(q, 1 + i, -1)
            others = [a for j, a in enumerate(visits.actions) if j != i]
            readings = by_others[(np.arange(len(at)), *others)]
            private_value = exact.private_values[agent][t][private]
            joint = exact.joint_values[t][at]
            next_private = next_joint = np.zeros(len(at))
            if after is not None:
                following = histories.turns[t + 1].private[i][after]
                next_private = exact.private_values[agent][t + 1][following]
                next_joint = exact.joint_values[t + 1][after]
            advantage = {
                "none": returns[t],
                "decentral": returns[t] - private_value,
                "central": returns[t] - joint,
                "counterfactual": returns[t] - (chances * readings).sum(axis=1),
                "decentral, td": visits.rewards + next_private - private_value,
                "central, td": visits.rewards + next_joint - joint,
            }
            score = np.eye(model.action_shape[i])[action] - chances
            for name in BASELINES:
                rows[name].append((private, advantage[name][:, None] * score))
        for name in BASELINES:
            by_baseline[name].append(rows[name])
    return by_baseline


def predicted(histories: JointHistories, draws: int) -> dict[str, float]:
    """Var(g) / |E g|^2 at the uniform policy, in joint actions."""
    model = histories.model
    policy = {agent: list(tables) for agent, tables in uniform(histories).items()}
    exact = evaluate(histories, policy)
    batch = Sampler(histories).play(policy, draws, np.random.default_rng(0))
    signal = 0.0
    for agent in model.agents:
        for slope, chances in zip(exact.gradient[agent], policy[agent], strict=True):
            gradient = chances * (slope - (chances * slope).sum(axis=1, keepdims=True))
            signal += float((gradient**2).sum())
    noise = {}
    for name, turns in gradients(histories, exact, policy, batch).items():
        square = sum(float((g**2).sum(axis=1).mean()) for rows in turns for _, g in rows)
        noise[name] = histories.horizon * (square - signal) / signal
    return noise


def learn(
    histories: JointHistories,
    name: str,
    rate: float,
    seed: int,
    episodes: int,
    most: int,
    goal: float,
) -> float:
    """Joint actions until two updates in a row have the exact value `goal`; inf beyond `most`."""
    model, rng, sampler = histories.model, np.random.default_rng(seed), Sampler(histories)
    logits: Tables = {
        agent: [np.zeros((turn.counts[i], model.action_shape[i])) for turn in histories.turns]
        for i, agent in enumerate(model.agents)
    }
    policy, used, before = softmax(logits), 0, False
    exact = evaluate(histories, policy)
    while used < most:
        batch = sampler.play(policy, episodes, rng)
        for t, rows in enumerate(gradients(histories, exact, policy, batch)[name]):
            for agent, (private, gradient) in zip(model.agents, rows, strict=True):
                np.add.at(logits[agent][t], private, rate * gradient / episodes)
        used += episodes * histories.horizon
        policy = softmax(logits)
        exact = evaluate(histories, policy)
        if before and exact.value >= goal:
            return float(used)
        before = exact.value >= goal
    return float("inf")


def measure(problem: Problem, options: argparse.Namespace) -> list[dict[str, Any]]:
    task: Any = task_class("dpomdp")(**problem.task)
    model = task.model
    histories = JointHistories(model, problem.horizon)
    goal = 0.9 * best_joint_policy(model, problem.horizon).value
    expected = predicted(histories, options.draws)
    rows = []
    for name in BASELINES:
        row: dict[str, Any] = {
            "problem": problem.name,
            "horizon": problem.horizon,
            "baseline": name,
            "predicted": expected[name],
        }
        if options.learning:
            started = time.process_time()
            wanted = (histories, name)
            size = (max(1, options.batch // problem.horizon), options.most, goal)
            tuned = {
                rate: np.mean(
                    [min(learn(*wanted, rate, s, *size), options.most) for s in range(100, 104)]
                )
                for rate in RATES
            }
            rate = min(tuned, key=lambda one: (tuned[one], one))
            reached = [learn(*wanted, rate, seed, *size) for seed in range(options.seeds)]
            mean = estimate([min(steps, float(options.most)) for steps in reached])
            assert mean is not None
            row |= {
                "rate": rate,
                "at_edge": rate in (RATES[0], RATES[-1]),
                "batch": options.batch,
                "mean": [mean.mean, mean.low, mean.high],
                "median": float(np.median(reached)),
                "reached": int(np.isfinite(reached).sum()),
                "seeds": options.seeds,
                "cpu_seconds": round(time.process_time() - started, 1),
            }
        rows.append(row)
        print(row, flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=["luck"])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--draws", type=int, default=40_000)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--batch", type=int, default=16, help="joint actions per update")
    parser.add_argument("--most", type=int, default=8_000)
    parser.add_argument("--no-learning", dest="learning", action="store_false")
    options = parser.parse_args()
    rows = [row for name in options.problems for row in measure(PROBLEMS[name], options)]
    if options.out:
        options.out.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
