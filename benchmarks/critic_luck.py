r"""`luck` with a given critic: joint actions to 90% beside teams that learn one, or have none.

    python benchmarks/critic_luck.py --out luck                      # resumable, one core
    python benchmarks/critic_luck.py --out luck --report

CoLLM-CC's runs of other seeds are recorded to the end of their budget, a critic of joint histories
is fitted on their episodes (as by `colearn critic fit`), and fresh teams are given it, frozen or
trained on. Values are exact, at temperature 0.2, after every iteration of 64 joint actions; a run
ends once it has reached 90% of the optimum twice in a row, or with its budget of 6,400.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from _optima_problems import PROBLEMS
from optima import Run, config_of

from colearn.config import Config
from colearn.contract import Callback
from colearn.contract.callback import EvaluateEvent
from colearn.experiment.critic_fit import FitSettings, fit_config, fit_critic
from colearn.experiment.loop import Experiment
from colearn.export import write_fit
from colearn.record import open_run
from colearn.statistics.over_seeds import estimate

LUCK = PROBLEMS["luck"]
OPTIMUM = 10.0
FROZEN = {"collm_cc, given, frozen": 1.0, "collm_cc, given, trained on": 0.0}
METHODS = [*FROZEN, "collm_cc", "coma", "collm_dc", "magrpo"]
RECORDED = (900, 901, 902, 903)


def settings_of(method: str, seed: int) -> dict[str, Any]:
    name = "collm_cc" if method in FROZEN else method
    settings = config_of(Run(name, "luck", "no optimism", seed, LUCK.steps))
    settings["evaluation"]["every"] = 1
    return settings


def fitted(out: Path) -> Path:
    """A critic of the recorded runs' joint histories."""
    runs = [out / f"recorded-{seed}" for seed in RECORDED]
    for seed, folder in zip(RECORDED, runs, strict=True):
        if not (folder / "run.json").exists():
            settings = settings_of("collm_cc", seed)
            settings["train"]["record"] = True
            settings["evaluation"]["every"] = 10**6
            Experiment(Config.model_validate(settings), folder).run()
    critic = out / "critic"
    if not critic.exists():
        sets = ["critic.learning_rate=3e-3", "critic.head_learning_rate=1e-2"]
        sets += ["critic.schedule=linear", "critic.path=embedded-tiny-varied:900"]
        config = fit_config([open_run(run) for run in runs], overrides=sets)

        def print_epoch(epoch: int, worth: Any) -> None:
            print(f"epoch {epoch}: R^2 {[one.r2 for one in worth]}", flush=True)

        write_fit(fit_critic(runs, config, FitSettings(), print_epoch), critic)
    return critic


@dataclass(frozen=True)
class Stop(Callback):
    """Ends a run at the second of two evaluations in a row that reach 90%."""

    values: list[float] = field(default_factory=list, init=False)

    def on_evaluate(self, event: EvaluateEvent) -> None:
        self.values.append(event.metrics["exact_return_cold"] / LUCK.scale)
        if min([-math.inf, *self.values][-2:]) >= 0.9 * OPTIMUM:
            event.stop = "reached 90%"


def run(out: Path, method: str, seed: int) -> dict[str, Any]:
    settings = settings_of(method, seed)
    if method in FROZEN:
        given = {"from": str(fitted(out)), "path": None, "frozen": FROZEN[method]}
        settings["critic"] |= given
    settings["run"]["callbacks"] = ["critic_luck:Stop"]
    folder = out / "runs" / f"{method}-{seed}"
    shutil.rmtree(folder, ignore_errors=True)  # of a run that was cut off
    record = Experiment(Config.model_validate(settings), folder).run()
    lines = open_run(folder).lines()
    key = "critic/explained_variance"
    explained = [one.metrics[key] or 0.0 for one in lines if key in one.metrics]
    return {
        "method": method,
        "seed": seed,
        "curve": [
            (one.environment_steps, round(one.metrics["exact_return_cold"] / LUCK.scale, 3))
            for one in lines
            if one.kind == "evaluation"
        ],
        "explained_first": [round(one, 3) for one in explained[:5]],
        "explained_late": round(statistics.mean(explained[len(explained) // 2 :]), 3)
        if explained
        else None,
        "critic_joint_actions": record.critic_joint_actions,
    }


def reached(row: dict[str, Any], once: bool = False) -> float:
    """Joint actions at the first of two evaluations in a row that reach 90%; `once`: at the first
    that does. A run that does not get there counts as its whole budget."""
    curve = row["curve"]
    for (steps, value), (_, after) in zip(curve, curve if once else curve[1:], strict=False):
        if min(value, value if once else after) >= 0.9 * OPTIMUM:
            return float(steps)
    return float(LUCK.steps)


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
            rows.append(run(options.out, method, seed))
            with path.open("a") as file:
                file.write(json.dumps(rows[-1]) + "\n")
            print(method, seed, reached(rows[-1]), rows[-1]["explained_first"], flush=True)
    print(report(rows))


if __name__ == "__main__":
    main()
