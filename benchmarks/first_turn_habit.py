"""How often teams of tables open a door at the first turn of Dec-Tiger, by the start's play there.

    python benchmarks/first_turn_habit.py --out benchmarks/results/optima/first_turn_habit.md

A model of why runs of benchmarks/optima.py end at -19: logits for every private history, updated as
its actors are (clipped ratios, normalised advantages, KL to the start, four epochs of two
minibatches, temperature 0.7), with the mean return of the turn as the baseline in place of a
critic. A start's play is that of `embedded-tiny-varied`: both agents read the same texts through
the same weights, so both have the mean of two draws from Dirichlet(5, 5, 5). It is drawn for the
first turn, too, or uniform there. Runs end after 20 of 168 iterations.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from _optima_problems import HOT, OPTIMISM
from numpy.typing import NDArray

from colearn.registry import task_class
from colearn.tabular.model import TabularModel

Array = NDArray[np.float64]
Index = NDArray[np.int64]

RUNS, EPISODES, ITERATIONS, BUDGET = 60, 256, 20, 168
CLIP, KL, CONCENTRATION = 0.2, 0.1, 5.0
HISTORIES = 1 + 6 + 36
"""Private histories of three turns, with three actions and two observations."""
RATES = (0.03, 0.1)
"""Of Adam, per logit; the networks' lies somewhere between."""


@dataclass(frozen=True)
class Ends:
    """Shares of runs by their play at the first turn, above 0.8 for both agents."""

    leaning: float
    """Runs that start with a door above 0.45 at the first turn."""
    opens: float
    opens_leaning: float | None
    """Of the leaning runs; None without one."""
    listens: float


def softmax(logits: Array) -> Array:
    powers = np.exp(logits - logits.max(-1, keepdims=True))
    result: Array = powers / powers.sum(-1, keepdims=True)
    return result


def start(rng: np.random.Generator, uniform_first: bool) -> Array:
    """Logits [runs, agents, histories, actions]."""
    draws = rng.dirichlet([CONCENTRATION] * 3, (2, RUNS, 5)).mean(0)
    logits = np.zeros((RUNS, 2, HISTORIES, 3))
    if not uniform_first:
        logits[:, :, 0] = np.log(draws[:, None, 0])
    for history in range(1, HISTORIES):
        turn = 1 if history < 7 else 2
        seen = (history - (1 if turn == 1 else 7)) % 2
        logits[:, :, history] = np.log(draws[:, None, 2 * turn - 1 + seen])
    return logits


def drawn(rng: np.random.Generator, probabilities: Array) -> Index:
    """One draw from each distribution of the last axis."""
    uniform = rng.random(probabilities.shape[:-1])[..., None]
    index: Index = (uniform > probabilities.cumsum(-1)[..., :-1]).sum(-1)
    return index


def played(
    model: TabularModel, rng: np.random.Generator, policy: Array
) -> tuple[Index, Index, Array]:
    """Private histories and actions [agents, runs, episodes, turns], returns [runs, episodes,
    turns]."""
    run = np.arange(RUNS)[:, None]
    state = drawn(rng, np.broadcast_to(model.start, (RUNS, EPISODES, 2)))
    at = np.zeros((2, RUNS, EPISODES), dtype=np.int64)
    histories, actions, rewards = [], [], []
    for turn in range(3):
        chosen = np.stack([drawn(rng, policy[run, agent, at[agent]]) for agent in (0, 1)])
        joint = 3 * chosen[0] + chosen[1]
        after = drawn(rng, model.transition[joint, state])
        seen = drawn(rng, model.observation[joint, after])
        histories.append(at)
        actions.append(chosen)
        rewards.append(model.reward[joint, state, after, seen])
        state = after
        observed = np.stack([seen // 2, seen % 2])
        step = 2 * chosen + observed
        at = 1 + step if turn == 0 else 7 + 6 * (at - 1) + step if turn == 1 else at
    returns = np.stack(rewards, -1)[..., ::-1].cumsum(-1)[..., ::-1]
    return np.stack(histories, -1), np.stack(actions, -1), returns


def expectile(numbers: Array, level: float) -> Array:
    """Over the last axis, kept; by fixed-point iteration."""
    centre: Array = numbers.mean(-1, keepdims=True)
    for _ in range(30):
        weights = np.where(numbers > centre, level, 1 - level)
        centre = (weights * numbers).sum(-1, keepdims=True) / weights.sum(-1, keepdims=True)
    return centre


def advantages(returns: Array, level: float) -> Array:
    errors = returns - expectile(returns.transpose(0, 2, 1), level).transpose(0, 2, 1)
    errors = 2 * np.where(errors > 0, level, 1 - level) * errors
    spread = errors.std((1, 2), keepdims=True) + 1e-6
    normalized: Array = (errors - errors.mean((1, 2), keepdims=True)) / spread
    return normalized


def train(model: TabularModel, rate: float, optimism: bool, uniform_first: bool) -> Ends:
    rng = np.random.default_rng(0)
    logits = start(rng, uniform_first)
    reference = softmax(logits / HOT)
    first, second = np.zeros_like(logits), np.zeros_like(logits)
    run, steps = np.arange(RUNS)[:, None, None], 0
    for iteration in range(ITERATIONS):
        left = 1 - iteration / BUDGET
        level = 0.5 + (OPTIMISM - 0.5) * max(0.0, 2 * left - 1) * optimism
        behaviour = softmax(logits / HOT)
        histories, actions, returns = played(model, rng, behaviour)
        gains = advantages(returns, level)
        for _ in range(4):
            for part in np.array_split(rng.permutation(EPISODES), 2):
                steps += 1
                policy, gradient = softmax(logits / HOT), np.zeros_like(logits)
                for agent in (0, 1):
                    at, chosen = histories[agent][:, part], actions[agent][:, part]
                    now, gain = policy[run, agent, at], gains[:, part]
                    new = np.take_along_axis(now, chosen[..., None], -1)[..., 0]
                    ratio = new / behaviour[run, agent, at, chosen]
                    cut = np.where(gain > 0, ratio > 1 + CLIP, ratio < 1 - CLIP)
                    pull = KL * left * (now - reference[run, agent, at])
                    push = (np.eye(3)[chosen] - now) * (~cut * ratio * gain)[..., None] - pull
                    place = (run * HISTORIES + at).ravel()
                    for action in range(3):
                        sums = np.bincount(place, push[..., action].ravel(), RUNS * HISTORIES)
                        gradient[:, agent, :, action] = sums.reshape(RUNS, HISTORIES)
                gradient /= 3 * len(part) * HOT
                first = 0.9 * first + 0.1 * gradient
                second = 0.99 * second + 0.01 * gradient**2
                mean, square = first / (1 - 0.9**steps), second / (1 - 0.99**steps)
                logits = logits + rate * min(1, steps / 10) * left * mean / (np.sqrt(square) + 1e-8)
    policy = softmax(logits[:, :, 0] / HOT)
    opens = (policy[..., 1:].max(-1) > 0.8).all(1)
    leaning = reference[:, 0, 0, 1:].max(-1) > 0.45
    return Ends(
        leaning=float(leaning.mean()),
        opens=float(opens.mean()),
        opens_leaning=float(opens[leaning].mean()) if leaning.any() else None,
        listens=float((policy[..., 0] > 0.8).all(1).mean()),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, help="write the table here, too")
    out = parser.parse_args().out
    task: Any = task_class("dpomdp")
    model = task(problem="dec_tiger").model
    lines = [
        "| play at the first turn | optimism | rate | starts with a door above 0.45 | open | "
        "of those starts | listen |",
        "|---" * 7 + "|",
    ]
    for uniform_first in (False, True):
        for optimism in (True, False):
            for rate in RATES:
                ends = train(model, rate, optimism, uniform_first)
                of_leaning = "" if ends.opens_leaning is None else f"{ends.opens_leaning:.0%}"
                cells = [
                    "uniform" if uniform_first else "drawn",
                    "yes" if optimism else "no",
                    f"{rate:g}",
                    f"{ends.leaning:.0%}",
                    f"{ends.opens:.0%}",
                    of_leaning,
                    f"{ends.listens:.0%}",
                ]
                lines.append(f"| {' | '.join(cells)} |")
                print(lines[-1], flush=True)
    if out is not None:
        out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
