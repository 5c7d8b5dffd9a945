"""A long episode paid at its end, by networks: joint actions to 90% of groups and critics.

    python benchmarks/critic_length.py --out length                  # resumable, one core
    python benchmarks/critic_length.py --out length --report

The problem of `length_tables.py` with networks. Two agents, eight turns; at each turn each agent
sees a key of its own and the progress so far. If both give the right one of two answers for their
keys, the progress rises by one. The team earns the progress when the episode ends. Every turn has
keys of its own, so that what is learned at one turn says nothing of the others.

An iteration is 16 episodes, 128 joint actions. The given critic is fitted on recorded runs of other
seeds, which learned their own. The share of the largest return is that of the training play,
averaged over two iterations in a row; a run ends once this reaches 90%.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
from _critic_runs import critic_columns, finished, fitted
from critic_dpomdp import times

from colearn.contract import Callback, DecPOMDP, LegalActions
from colearn.contract.callback import UpdateEvent
from colearn.experiment.critic_fit import FitSettings
from colearn.types import Outcome

TURNS, GROUP, EPISODES, GOAL = 8, 8, 16, 0.9
ANSWERS = {"a": "left", "b": "right"}
"""The right answer to a key, by the key's first letter."""
METHODS: dict[str, dict[str, Any]] = {
    "groups": {
        "name": "magrpo",
        "advantage": {"name": "group_mean", "normalize": True},
        "rollout": {"name": "parallel", "k": GROUP},
    },
    "V": {"name": "collm_cc", "advantage": {"lam": 1.0, "normalize": True}},
    "V, TD(0)": {
        "name": "collm_cc",
        "advantage": {"lam": 0.0, "target_lam": 1.0, "normalize": True},
    },
}
FROZEN = {"given V, TD(0)": 1.0, "given V, TD(0), trained on": 0.0}
"""Share of the budget in which a given critic stays as it was fitted."""
METHODS |= dict.fromkeys(FROZEN, METHODS["V, TD(0)"])
RECORDED = (900, 901)


@dataclass(frozen=True)
class Climbed:
    """What both agents see at a turn, and the progress before it."""

    turn: int
    done: int
    keys: tuple[str, str]


class Climb(DecPOMDP[int, Climbed], LegalActions):
    """The first keys belong to the item, the later ones are drawn in the episode."""

    horizon = TURNS
    agents = ("ann", "bob")

    def items(self, split: str) -> Sequence[int]:
        return range(4096) if split == "train" else range(4096, 4096 + 64)

    def reset(self, item: int, rng: np.random.Generator) -> Climbed:
        return Climbed(0, 0, keys_of(0, np.random.default_rng(item)))

    def observe(self, state: Climbed, agent: str) -> str:
        key = state.keys[self.agents.index(agent)]
        return f"turn {state.turn} done {state.done} key {key}"

    def step(
        self, state: Climbed, actions: Mapping[str, str], rng: np.random.Generator
    ) -> Outcome[Climbed]:
        right = all(
            actions[agent].strip() == ANSWERS[key[0]]
            for agent, key in zip(self.agents, state.keys, strict=True)
        )
        turn, done = state.turn + 1, state.done + right
        ends = turn == TURNS
        after = Climbed(turn, done, keys_of(turn, rng))
        return Outcome(state=after, reward=float(done) if ends else 0.0, done=ends)

    def metrics(self, state: Climbed) -> Mapping[str, float]:
        return {"share": state.done / TURNS}

    def legal_action(self, state: Climbed, agent: str, rng: np.random.Generator) -> str:
        return str(rng.choice(list(ANSWERS.values())))


def keys_of(turn: int, rng: np.random.Generator) -> tuple[str, str]:
    """One key for each agent, of this turn alone: a3 or b3."""
    first, second = (f"{letter}{turn}" for letter in rng.choice(list(ANSWERS), size=2))
    return first, second


@dataclass(frozen=True)
class Stop(Callback):
    """Ends a run once the training play of two iterations in a row reaches the goal."""

    shares: list[float] = field(default_factory=list, init=False)

    def on_update(self, event: UpdateEvent) -> None:
        share = event.metrics["return"] / TURNS
        self.shares.append(share)
        if len(self.shares) > 1 and sum(self.shares[-2:]) >= 2 * GOAL:
            event.stop = "reached 90%"


def settings_of(method: str, seed: int, rate: float, steps: int) -> dict[str, Any]:
    algorithm = json.loads(json.dumps(METHODS[method]))
    algorithm["loss"] = {"ratio": "token", "clip": 0.2, "kl": 0.02}
    groups = method == "groups"
    if not groups:
        algorithm["value_loss"] = {"rescale": True, "frozen_targets": True}
    critic = {
        "path": f"embedded-tiny-untrained:{seed}",
        "learning_rate": 3e-3,
        "head_learning_rate": 1e-2,
        "baseline": "none",
    }
    return {
        "task": {"name": "critic_length:Climb"},
        "algorithm": algorithm,
        "models": {"*": {"path": f"embedded-tiny:{seed}", "learning_rate": rate}},
        "agents": {"*": {"sampling": {"max_tokens": 2}}},
        "critic": None if groups else critic,
        "train": {
            "environment_steps": steps,
            "episodes": EPISODES // GROUP if groups else EPISODES,
            "epochs": 4,
            "minibatch": EPISODES // 2 * TURNS,
        },
        "evaluation": {"every": 10**6, "episodes": 8, "transcripts": 0},
        "run": {"seed": seed, "device": "cpu", "callbacks": ["critic_length:Stop"]},
    }


def given(out: Path, rate: float, steps: int) -> Path:
    """A critic of recorded runs that learned their own."""
    runs = [out / f"recorded-{seed}" for seed in RECORDED]
    for seed, folder in zip(RECORDED, runs, strict=True):
        settings = settings_of("V, TD(0)", seed, rate, steps)
        settings["train"]["record"] = True
        settings["run"]["callbacks"] = []
        finished(folder, settings)
    sets = ["critic.schedule=linear", "critic.path=embedded-tiny-untrained:900"]
    return fitted(out / "critic", runs, FitSettings(epochs=2), sets)


def run(out: Path, method: str, seed: int, rate: float, steps: int) -> dict[str, Any]:
    settings = settings_of(method, seed, rate, steps)
    if method in FROZEN:
        changes = {"from": str(given(out, rate, steps)), "frozen": FROZEN[method]}
        settings["critic"] |= {**changes, "path": None, "baseline": None}
    started = time.process_time()
    folder = finished(out / "runs" / f"{method}-{seed}-{rate:g}", settings)
    return {
        "method": method,
        "seed": seed,
        "rate": rate,
        "curve": [
            (one.environment_steps, round(one.metrics["return"] / TURNS, 3))
            for one in folder.lines()
            if one.kind == "update"
        ],
        **critic_columns(folder),
        "steps": steps,
        "cpu_seconds": round(time.process_time() - started, 1),
    }


def reached(row: Mapping[str, Any], goal: float = GOAL) -> float:
    """Joint actions played before the two iterations in a row whose mean share reaches `goal`; a
    run that does not get there counts as its whole budget."""
    curve, before = row["curve"], 0.0
    for (steps, share), (_, after) in pairwise(curve):
        if share + after >= 2 * goal:
            return before
        before = float(steps)
    return float(row["steps"])


def report(rows: Sequence[Mapping[str, Any]]) -> str:
    lines = [
        "| method | seeds | joint actions to 90%, by seed | median | to 70%, median "
        "| times those of groups, by seed | explained, updates 1 to 5 | later half "
        "| joint actions of the critic | processor s of a run |",
        "|---" * 10 + "|",
    ]
    groups = {row["seed"]: reached(row) for row in rows if row["method"] == "groups"}
    for method in METHODS:
        some = [row for row in rows if row["method"] == method]
        if not some:
            continue
        actions = [reached(row) for row in some]
        both = [row for row in some if row["seed"] in groups and method != "groups"]
        explained = [value for row in some for value in row["explained_first"]]
        late = [row["explained_late"] for row in some if row["explained_late"] is not None]
        cells = [
            method,
            str(len(some)),
            " ".join(
                "-" if n == row["steps"] else f"{n:,.0f}"
                for n, row in zip(actions, some, strict=True)
            ),
            f"{statistics.median(actions):,.0f}",
            f"{statistics.median(reached(row, 0.7) for row in some):,.0f}",
            times([float(np.log(reached(row) / groups[row["seed"]])) for row in both]),
            f"{statistics.mean(explained):.2f}" if explained else "-",
            f"{statistics.mean(late):.2f}" if late else "-",
            f"{some[0]['critic_joint_actions'] or 0:,}",
            f"{statistics.median(row['cpu_seconds'] for row in some):.0f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    run_and_report(str(__doc__), METHODS, run, report, seeds=4)


def run_and_report(
    doc: str,
    methods: Collection[str],
    run: Callable[[Path, str, int, float, int], dict[str, Any]],
    report: Callable[[list[dict[str, Any]]], str],
    *,
    seeds: int,
) -> None:
    """The command of a benchmark of this problem: makes the runs that `--out` lacks, and prints the
    report of all runs with the same rate."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=seeds)
    parser.add_argument("--first-seed", type=int, default=10)
    parser.add_argument("--methods", nargs="+", choices=methods, default=list(methods))
    parser.add_argument("--rate", type=float, default=4e-3, help="of the actors")
    parser.add_argument("--steps", type=int, default=6400, help="joint actions of a run")
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "runs.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    done = {(row["method"], row["seed"], row["rate"]) for row in rows}
    of_seeds = range(options.first_seed, options.first_seed + options.seeds)
    for seed, method in () if options.report else product(of_seeds, options.methods):
        if (method, seed, options.rate) not in done:
            rows.append(run(options.out, method, seed, options.rate, options.steps))
            with path.open("a") as file:
                file.write(json.dumps(rows[-1]) + "\n")
            print(method, seed, reached(rows[-1]), rows[-1]["explained_first"], flush=True)
    print(report([row for row in rows if row["rate"] == options.rate]))


if __name__ == "__main__":
    main()
