"""A small problem with a given critic: joint actions to 90% beside teams that learn one or none.

    python benchmarks/critic_dpomdp.py --out luck                    # resumable, one core
    python benchmarks/critic_dpomdp.py --problem meeting --out meeting
    python benchmarks/critic_dpomdp.py --out luck --report

CoLLM-CC's runs of other seeds are recorded to the end of their budget, a critic of joint histories
is fitted on their episodes (as by `colearn critic fit`), and fresh teams are given it, frozen or
trained on. Values are exact, at temperature 0.2, after every iteration; a run ends once it has
reached 90% of the optimum twice in a row, or with the problem's budget.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from _critic_runs import critic_columns, finished, fitted
from _optima_problems import PROBLEMS
from optima import Run, config_of

from colearn.contract import Callback
from colearn.contract.callback import EvaluateEvent
from colearn.experiment.critic_fit import FitSettings
from colearn.statistics.over_seeds import estimate

OPTIMA = {"luck": 10.0, "meeting": 59 / 9}
"""Exact, as `references` of `_optima_problems.py` finds them."""
FROZEN = {"collm_cc, given, frozen": 1.0, "collm_cc, given, trained on": 0.0}
METHODS = [*FROZEN, "collm_cc", "coma", "collm_dc", "magrpo"]
FIRST_RECORDED = 900


def settings_of(problem: str, method: str, seed: int) -> dict[str, Any]:
    name = "collm_cc" if method in FROZEN else method
    settings = config_of(Run(name, problem, "no optimism", seed, PROBLEMS[problem].steps))
    settings["evaluation"]["every"] = 1
    settings["critic"]["baseline"] = "none"
    return settings


def given(out: Path, problem: str, recorded: int) -> Path:
    """A critic of the joint histories of so many recorded runs."""
    seeds = range(FIRST_RECORDED, FIRST_RECORDED + recorded)
    runs = [out / f"recorded-{seed}" for seed in seeds]
    for seed, folder in zip(seeds, runs, strict=True):
        settings = settings_of(problem, "collm_cc", seed)
        settings["train"]["record"] = True
        settings["evaluation"]["every"] = 10**6
        finished(folder, settings)
    sets = ["critic.learning_rate=3e-3", "critic.head_learning_rate=1e-2"]
    sets += ["critic.schedule=linear", "critic.path=embedded-tiny-varied:900"]
    return fitted(out / "critic", runs, FitSettings(), sets)


@dataclass(frozen=True)
class Stop(Callback):
    """Ends a run at the second of two evaluations in a row that reach 90%."""

    goal: float
    """Of the task's scaled rewards."""
    values: list[float] = field(default_factory=list, init=False)

    def on_evaluate(self, event: EvaluateEvent) -> None:
        self.values.append(event.metrics["exact_return_cold"])
        if min([-math.inf, *self.values][-2:]) >= self.goal:
            event.stop = "reached 90%"


def run(out: Path, problem: str, recorded: int, method: str, seed: int) -> dict[str, Any]:
    settings, scale = settings_of(problem, method, seed), PROBLEMS[problem].scale
    if method in FROZEN:
        critic = given(out, problem, recorded)
        changes = {"from": str(critic), "path": None, "frozen": FROZEN[method], "baseline": None}
        settings["critic"] |= changes
    goal = 0.9 * OPTIMA[problem] * scale
    settings["run"]["callbacks"] = [{"name": "critic_dpomdp:Stop", "goal": goal}]
    folder = finished(out / "runs" / f"{method}-{seed}", settings)
    return {
        "problem": problem,
        "method": method,
        "seed": seed,
        "curve": [
            (one.environment_steps, round(one.metrics["exact_return_cold"] / scale, 3))
            for one in folder.evaluations()
        ],
        **critic_columns(folder),
    }


def reached(row: dict[str, Any], once: bool = False) -> float:
    """Joint actions at the first of two evaluations in a row that reach 90%; `once`: at the first
    that does. A run that does not get there counts as its whole budget."""
    curve, goal = row["curve"], 0.9 * OPTIMA[row["problem"]]
    for (steps, value), (_, after) in zip(curve, curve if once else curve[1:], strict=False):
        if min(value, value if once else after) >= goal:
            return float(steps)
    return float(PROBLEMS[row["problem"]].steps)


def report(rows: list[dict[str, Any]]) -> str:
    by_method = {
        method: {row["seed"]: row for row in rows if row["method"] == method} for method in METHODS
    }
    lines = [
        "| method | seeds | joint actions to 90%, by seed | median | at one evaluation, median "
        "| times the first row's, by seed | explained, updates 1 to 5 | late "
        "| joint actions of the critic |",
        "|---" * 9 + "|",
    ]
    first = by_method[METHODS[0]]
    for method, of_seed in by_method.items():
        if of_seed:
            actions = [reached(row) for row in of_seed.values()]
            cells = [method, str(len(of_seed)), " ".join(f"{n:,.0f}" for n in actions)]
            cells.append(f"{statistics.median(actions):,.0f}")
            once = [reached(row, once=True) for row in of_seed.values()]
            cells.append(f"{statistics.median(once):,.0f}")
            both = [seed for seed in of_seed if seed in first]
            cells.append(
                times([math.log(reached(of_seed[s]) / reached(first[s])) for s in both])
                if method != METHODS[0]
                else ""
            )
            explained = [value for row in of_seed.values() for value in row["explained_first"]]
            cells.append(f"{statistics.mean(explained):.2f}" if explained else "-")
            late = [row["explained_late"] for row in of_seed.values()]
            cells.append("-" if None in late else f"{statistics.mean(late):.2f}")
            cells.append(f"{next(iter(of_seed.values()))['critic_joint_actions'] or 0:,}")
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def times(logarithms: list[float]) -> str:
    """The geometric mean of ratios, with Student's 95% interval on their logarithm."""
    found = estimate(logarithms)
    if found is None:
        return "-"
    shown: Callable[[float], str] = lambda log: f"{math.exp(log):.1f}"  # noqa: E731
    bounds = "" if found.low is None else f" [{shown(found.low)}, {shown(found.high)}]"
    return shown(found.mean) + bounds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--problem", choices=OPTIMA, default="luck")
    parser.add_argument("--recorded", type=int, default=4, help="runs that the critic is fitted on")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=10)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "runs.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    done = {(row["method"], row["seed"]) for row in rows}
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    for seed, method in () if options.report else [(s, m) for s in seeds for m in options.methods]:
        if (method, seed) not in done:
            rows.append(run(options.out, options.problem, options.recorded, method, seed))
            with path.open("a") as file:
                file.write(json.dumps(rows[-1]) + "\n")
            print(method, seed, reached(rows[-1]), rows[-1]["explained_first"], flush=True)
    print(report(rows))


if __name__ == "__main__":
    main()
