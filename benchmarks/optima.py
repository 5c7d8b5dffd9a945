"""How much of the known optimum each algorithm reaches, exactly, on six small problems.

    python benchmarks/optima.py --quick           # 3 seeds, half the steps: under ten minutes
    python benchmarks/optima.py --tune            # chooses the learning rates, writes tuning.json
    python benchmarks/optima.py                   # 10 seeds: the recorded table and figure

Every agent is a fresh two-layer transformer (about 25 thousand parameters, the seed draws its
weights) whose warm start taught it to give legal replies, all alike. Nothing reported is a sample:
it is the value of the joint policy that the networks stand for, computed over all histories, next
to the best joint policy that an exact search finds, the best that knows the turn only, and the best
that forgets all but its latest observation. Runs go through `Experiment`, as a user's do.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

RESULTS = Path(__file__).parent / "results" / "optima"
TUNING = RESULTS / "tuning.json"


@dataclass(frozen=True)
class Problem:
    """A shipped problem and what a run on it may cost."""

    name: str
    horizon: int
    steps: int
    """Joint actions of a run; `--quick` takes half of them."""
    tuning: int
    """Joint actions of a run of `--tune`."""
    actions: int
    """Joint actions per update, about."""
    samples: int
    """K of the group methods: a tree of K^H joint histories fits one update."""
    scale: float
    """Of the rewards, so that values are about 1."""
    penalty: float
    """Of a rejected reply, in the problem's rewards: below the return of any sensible play."""


PROBLEMS = {
    problem.name: problem
    for problem in (
        Problem("climbing", 1, 6_400, 4_800, 64, 8, 0.1, -30.0),
        Problem("penalty", 1, 6_400, 4_800, 64, 8, 0.1, -30.0),
        Problem("two_step", 2, 7_200, 4_800, 72, 8, 0.1, -10.0),
        Problem("dec_tiger", 3, 11_520, 6_400, 128, 4, 0.02, -100.0),
        Problem("lock", 6, 12_800, 10_240, 256, 2, 0.1, -10.0),
        Problem("vault", 6, 10_240, 5_120, 256, 2, 0.1, -10.0),
    )
}


@dataclass(frozen=True)
class Method:
    """An algorithm with its settings here, beyond the learning rate."""

    algorithm: str
    settings: Mapping[str, Any]
    group: bool = False


HOPE = 0.98
"""The expectile of the rows that are named after it."""
METHODS = {
    "collm_cc": Method("collm_cc", {}),
    "collm_dc": Method("collm_dc", {}),
    "collm_cc gae": Method("collm_cc", {"advantage": {"trace": 0.95}}),
    "magrpo": Method("magrpo", {}, group=True),
    "magrpo equal turns": Method("magrpo", {"advantage": {"equal_turns": True}}, group=True),
    "magrpo chains": Method("magrpo", {"rollout": {"name": "parallel", "k": 8}}, group=True),
    "marloo": Method("marloo", {}, group=True),
    "maremax": Method("maremax", {}, group=True),
    "mareinforce": Method("mareinforce", {}, group=True),
    "collm_cc expectile": Method(
        "collm_cc", {"advantage": {"expectile": HOPE}, "value_loss": {"expectile": HOPE}}
    ),
    "magrpo expectile": Method(
        "magrpo", {"advantage": {"name": "group_expectile", "level": HOPE}}, group=True
    ),
}
"""`grpo` and `ac` are missing: they train a team of one, and no problem here is one agent's."""

ONE_TURN = {"magrpo equal turns", "magrpo chains", "collm_cc gae"}
"""At one turn the same as magrpo or collm_cc."""
LEFT_OUT = {
    "climbing": ONE_TURN,
    "penalty": ONE_TURN,
    "lock": {"collm_cc expectile", "magrpo expectile"},  # for time
    "vault": METHODS.keys() - {"collm_cc", "collm_dc", "magrpo chains"},
}

GRID = (1e-3, 3e-3)
TUNING_SEEDS = (100, 101)
"""Apart from the seeds of the table."""
CRITIC_RATE = 1e-2
WARMUP = 30
"""Updates until the actors' full learning rate, so that a critic has found the scale of returns."""


@dataclass(frozen=True)
class Run:
    """One training run."""

    method: str
    problem: str
    seed: int
    steps: int
    learning_rate: float


FIELDS = tuple(Run.__dataclass_fields__)


def config_of(run: Run) -> dict[str, Any]:
    """The run's config; a user would write it as YAML."""
    problem, method = PROBLEMS[run.problem], METHODS[run.method]
    settings: dict[str, Any] = {"name": method.algorithm, **method.settings}
    per_item = problem.horizon
    if method.group:
        rollout = {"name": "tree", "k": problem.samples, **settings.get("rollout", {})}
        settings["rollout"] = rollout
        branches = rollout["k"]
        per_item = branches * problem.horizon
        if rollout["name"] == "tree":
            per_item = sum(branches**turn for turn in range(1, problem.horizon + 1))
    model = f"embedded-tiny:{run.seed}"
    actor = {"path": model, "learning_rate": run.learning_rate, "warmup_steps": WARMUP}
    return {
        "task": {
            "name": "dpomdp",
            "problem": problem.name,
            "horizon": problem.horizon,
            "opening": "start",
            "turn": "{observation}",
            "reward_scale": problem.scale,
            "penalty": problem.penalty,
        },
        "algorithm": settings,
        "models": {"*": actor},
        "agents": {"*": {"sampling": {"max_tokens": 2}}},
        "critic": {"path": model, "learning_rate": CRITIC_RATE},
        "train": {
            "environment_steps": run.steps,
            "episodes": max(1, round(problem.actions / per_item)),
        },
        "evaluation": {"every": 10, "episodes": 1, "transcripts": 0, "exact": True},
        "run": {"seed": run.seed, "device": "cpu"},
    }


def train(run: Run) -> dict[str, Any]:
    """The run's exact learning curve, in the problem's own rewards."""
    import torch

    from colearn.config import Config
    from colearn.experiment.loop import Experiment

    torch.set_num_threads(1)
    scale = PROBLEMS[run.problem].scale
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        Experiment(Config.model_validate(config_of(run)), Path(folder) / "run").run()
        text = (Path(folder) / "run" / "metrics.jsonl").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    curve = [line for line in lines if line["kind"] == "evaluation"]
    return {
        **asdict(run),
        "curve_steps": [line["environment_steps"] for line in curve],
        "curve_values": [round(line["metrics"]["exact_return"] / scale, 4) for line in curve],
        "rejected": curve[-1]["metrics"]["exact_rejected"],
        "seconds": round(time.perf_counter() - started, 1),
    }


def references(problem: Problem) -> dict[str, float]:
    """The exact optimum and what less informed teams can reach at best."""
    from colearn.registry import task_class
    from colearn.tabular.evaluate import evaluate, uniform
    from colearn.tabular.histories import JointHistories
    from colearn.tabular.search import best_joint_policy

    model = task_class("dpomdp")(problem=problem.name).model
    histories = JointHistories(model, problem.horizon)
    kinds = {"optimum": "history", "memoryless": "memoryless", "open_loop": "open_loop"}
    found = {
        name: best_joint_policy(model, problem.horizon, information=kind).value
        for name, kind in kinds.items()
    }
    return {**found, "uniform": evaluate(histories, uniform(histories)).value}


def play(runs: Sequence[Run], workers: int, log: Path | None = None) -> list[dict[str, Any]]:
    """All runs, in processes of one thread each. Those that `log` holds already are not run again,
    and each new one is written to it as it ends."""
    lines = log.read_text().splitlines() if log is not None and log.exists() else []
    known = [json.loads(line) for line in lines]
    results = [run for run in known if Run(**{key: run[key] for key in FIELDS}) in runs]
    done = {Run(**{key: run[key] for key in FIELDS}) for run in results}
    order = sorted(
        (run for run in runs if run not in done),
        key=lambda run: (run.seed, -PROBLEMS[run.problem].horizon),
    )
    started = time.perf_counter()
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        futures = [pool.submit(train, run) for run in order]
        for future in as_completed(futures):
            if future.exception() is not None:
                pool.shutdown(cancel_futures=True)
            result = future.result()
            results.append(result)
            if log is not None:
                log.parent.mkdir(parents=True, exist_ok=True)
                with log.open("a") as file:
                    file.write(json.dumps(result) + "\n")
            print(
                f"[{len(results)}/{len(runs)}, {time.perf_counter() - started:.0f} s] "
                f"{result['method']} {result['problem']} lr {result['learning_rate']:g} "
                f"seed {result['seed']}: {result['curve_values'][-1]:.2f} "
                f"in {result['seconds']:.0f} s",
                file=sys.stderr,
                flush=True,
            )
    return results


def pairs(methods: Sequence[str], problems: Sequence[str]) -> list[tuple[str, str]]:
    """The (method, problem) pairs that are run."""
    return [
        (method, problem)
        for problem in problems
        for method in methods
        if method not in LEFT_OUT.get(problem, ())
    ]


def tune(chosen: Sequence[tuple[str, str]], workers: int) -> None:
    """Write tuning.json: the learning rate with the better mean final value, for each pair."""
    runs = [
        Run(method, problem, seed, PROBLEMS[problem].tuning, rate)
        for method, problem in chosen
        for seed in TUNING_SEEDS
        for rate in GRID
    ]
    values: dict[tuple[str, str], dict[float, list[float]]] = {}
    for result in play(runs, workers):
        key = (result["method"], result["problem"])
        by_rate = values.setdefault(key, {rate: [] for rate in GRID})
        by_rate[result["learning_rate"]].append(result["curve_values"][-1])
    found: dict[str, Any] = json.loads(TUNING.read_text()) if TUNING.exists() else {}
    for (method, problem), by_rate in sorted(values.items()):
        means = {f"{rate:g}": round(fmean(numbers), 3) for rate, numbers in by_rate.items()}
        best = max(GRID, key=lambda rate: fmean(by_rate[rate]))
        found.setdefault(method, {})[problem] = {"learning_rate": best, "mean_value": means}
    TUNING.parent.mkdir(parents=True, exist_ok=True)
    TUNING.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="3 seeds, half the steps")
    parser.add_argument("--tune", action="store_true", help="choose the learning rates anew")
    parser.add_argument("--seeds", type=int, help="seeds per pair (10; 3 with --quick)")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--out", type=Path, help="keep runs.jsonl here, and write table.md and curves.png"
    )
    options = parser.parse_args()
    chosen = pairs(options.methods, options.problems)
    if options.tune:
        tune(chosen, options.workers)
        return
    from _optima_report import write_report

    rates = json.loads(TUNING.read_text())
    runs = [
        Run(
            method,
            problem,
            seed,
            PROBLEMS[problem].steps // (2 if options.quick else 1),
            rates[method][problem]["learning_rate"],
        )
        for seed in range(options.seeds or (3 if options.quick else 10))
        for method, problem in chosen
    ]
    known = {name: references(PROBLEMS[name]) for name in options.problems}
    log = options.out / "runs.jsonl" if options.out else None
    print(write_report(play(runs, options.workers, log), known, options.out))


if __name__ == "__main__":
    main()
