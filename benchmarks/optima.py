"""Exact share of the known optimum that one recipe reaches on small problems.

    python benchmarks/optima.py --out benchmarks/results/optima             # ten seeds
    python benchmarks/optima.py --quick                                     # two seeds
    python benchmarks/optima.py --variants "one pass" "no epochs" --problems lock --seeds 3
    python benchmarks/optima.py --report benchmarks/results/optima          # the tables again

Every agent is a fresh two-layer transformer (about 25 thousand parameters, the seed draws its
weights) whose warm start taught it to give legal replies. Values are exact: they are computed over
all histories from the joint policy that the networks define, not sampled. They stand next to the
best joint policy that an exact search finds, the best that knows the turn only, and the best that
forgets all but its latest observation. Runs go through `Experiment`, as a user's do. Finished runs
are not repeated.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from _optima_problems import (
    COLD,
    COOLS,
    CRITIC_ONLY,
    FADES,
    GROUPS_ONLY,
    HOT,
    METHODS,
    NOT_OPTIMISTIC,
    ONE_PASS_CRITIC,
    OPTIMISM,
    PROBLEMS,
    RECIPE,
    RECIPE_CRITIC,
    RENAMED,
    VARIANTS,
)
from _optima_report import write_report


@dataclass(frozen=True)
class Run:
    """One training run."""

    method: str
    problem: str
    variant: str
    seed: int
    steps: int


FIELDS = tuple(Run.__dataclass_fields__)


def config_of(run: Run) -> dict[str, Any]:
    """The run's config; a user would write it as YAML."""
    problem = PROBLEMS[run.problem]
    algorithm: dict[str, Any] = json.loads(json.dumps(METHODS[run.method]))
    critic = has_critic(run.method)
    if run.variant not in NOT_OPTIMISTIC:
        optimism: dict[str, Any] = {}
        if run.variant != "constant optimism":
            optimism["anneal_fraction"] = FADES
        if critic:
            optimism["expectile"] = OPTIMISM
            algorithm |= {"advantage": {**optimism}, "value_loss": {**optimism}}
        else:
            algorithm["advantage"] = {"name": "group_expectile", "level": OPTIMISM, **optimism}
    size = "embedded-tiny" if run.variant == "uniform start" else "embedded-tiny-varied"
    model = f"{size}:{run.seed}"
    sampling = {"max_tokens": 2, "temperature": COLD, "anneal": {"start": HOT, "begin": COOLS}}
    config: dict[str, Any] = {
        "task": {
            "name": "dpomdp",
            **problem.task,
            "opening": "start",
            "turn": "{observation}",
            "reward_scale": problem.scale,
            "penalty": problem.penalty,
        },
        "algorithm": algorithm,
        "models": {"*": {"path": model}},
        "agents": {"*": {"sampling": sampling}},
        "critic": {"path": model, "baseline": "none"},
        "train": {
            "environment_steps": run.steps,
            "minibatch": max(128, problem.actions // 2),
        },
        "evaluation": {"every": 5, "episodes": 1, "transcripts": 0, "exact": True},
        "run": {"seed": run.seed, "device": "cpu"},
    }
    change(config, RECIPE)
    if critic:
        change(config, RECIPE_CRITIC)
    change(config, VARIANTS[run.variant])
    if run.variant == "one pass" and critic:
        change(config, ONE_PASS_CRITIC)
    per_item = joint_actions(problem.horizon, **config["algorithm"].get("rollout", {}))
    config["train"]["episodes"] = max(1, round(problem.actions / per_item))
    return config


def has_critic(method: str) -> bool:
    """Whether each item is played once and judged by a critic; else by what its siblings got."""
    return "rollout" not in METHODS[method]


def joint_actions(horizon: int, name: str = "chain", k: int = 1) -> int:
    """Of one item's chain, parallel chains or tree, where no episode ends early."""
    if name == "tree":
        return sum(k**turn for turn in range(1, horizon + 1))
    return horizon * k


def change(config: dict[str, Any], changes: Mapping[str, Any]) -> None:
    """Set dotted keys; a section is changed, not replaced."""
    for key, value in changes.items():
        *path, last = key.split(".")
        section = config
        for name in path:
            section = section.setdefault(name, {})
        section[last] = {**section.get(last, {}), **value} if isinstance(value, dict) else value


def train(run: Run) -> dict[str, Any]:
    """The run's exact learning curve, in the problem's own rewards."""
    import torch

    from colearn.config import Config
    from colearn.training.loop import Experiment

    torch.set_num_threads(1)
    scale = PROBLEMS[run.problem].scale
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        Experiment(Config.model_validate(config_of(run)), Path(folder) / "run").run()
        text = (Path(folder) / "run" / "metrics.jsonl").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    curve = [line for line in lines if line["kind"] == "evaluation"]

    key = "critic/explained_variance"
    told = [line["metrics"][key] for line in lines if line["metrics"].get(key) is not None]

    def values(name: str) -> list[float]:
        return [round(line["metrics"][name] / scale, 4) for line in curve]

    return {
        **asdict(run),
        "curve_steps": [line["environment_steps"] for line in curve],
        "curve_values": values("exact_return"),
        "curve_cold": values("exact_return_cold"),
        "curve_greedy": values("exact_return_greedy"),
        "rejected": round(curve[-1]["metrics"]["exact_rejected"], 5),
        "updates": lines[-1]["updates"],
        "explained_variance": round(statistics.median(told), 3) if told else None,
        "seconds": round(time.perf_counter() - started, 1),
    }


def known_runs(log: Path | None) -> list[dict[str, Any]]:
    """The runs recorded in a log, variants under their present names."""
    if log is None or not log.exists():
        return []
    runs = [json.loads(line) for line in log.read_text().splitlines()]
    return [run | {"variant": RENAMED.get(run["variant"], run["variant"])} for run in runs]


def play(runs: Sequence[Run], workers: int, log: Path | None = None) -> list[dict[str, Any]]:
    """All runs, in processes of one thread each, seed by seed. Those that `log` holds already are
    not run again, and each new one is written to it as it ends."""
    results = [run for run in known_runs(log) if _run(run) in runs]
    done = {_run(run) for run in results}
    order = sorted((run for run in runs if run not in done), key=lambda run: run.seed)
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
                f"{result['method']} {result['problem']} {result['variant']} "
                f"seed {result['seed']}: {result['curve_values'][-1]:.2f} "
                f"in {result['seconds']:.0f} s",
                file=sys.stderr,
                flush=True,
            )
    return results


def _run(result: Mapping[str, Any]) -> Run:
    return Run(**{key: result[key] for key in FIELDS})


def chosen_runs(options: argparse.Namespace) -> list[Run]:
    """What is asked for, less what cannot differ from the recipe."""
    runs = []
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        for problem in options.problems:
            for method in options.methods:
                for variant in options.variants:
                    unfit = GROUPS_ONLY if has_critic(method) else CRITIC_ONLY
                    if variant in unfit:
                        continue
                    steps = options.steps or PROBLEMS[problem].steps
                    runs.append(Run(method, problem, variant, seed, steps))
    return runs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="two seeds of the short problems")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--steps", type=int, help="joint actions of a run; the problem's own")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=["collm_cc", "magrpo"])
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=["recipe"])
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, help="keep runs.jsonl here, then write the report")
    parser.add_argument("--report", type=Path, help="write the report of the runs kept here")
    options = parser.parse_args()
    if options.quick:
        options.seeds, options.problems = 2, ["climbing", "penalty", "two_step", "lock"]
    if options.report is not None:
        print(write_report(known_runs(options.report / "runs.jsonl"), options.report))
        return
    log = options.out / "runs.jsonl" if options.out else None
    results = play(chosen_runs(options), options.workers, log)
    print(write_report(results if log is None else known_runs(log), options.out))


if __name__ == "__main__":
    main()
