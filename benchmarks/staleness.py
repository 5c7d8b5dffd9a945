"""Exact value that rollouts ahead of updates reach, at equal joint actions.

    python benchmarks/staleness.py --staleness 0 1 4 --seeds 2 --out runs.jsonl
    python benchmarks/staleness.py --staleness 0 1 4 --server --python .venv-vllm/bin/python
    python benchmarks/staleness.py --report runs.jsonl

Problem and recipe are those of `optima.py`; every run decodes on a copy of the weights. Above 0 the
loss corrects for stale actions (`--corrections`): "capped" by truncated importance weights,
"behaviour" by ratios to the generator's log-probabilities, "none" not at all. With `--server` a
vLLM server generates for each agent; they are started once. Iterations per hour leave evaluations
out. After a run at staleness 0 the schedule's simulation predicts those that follow, from its
seconds. Runs that `--out` has are not repeated. `--reroll N` starts from the same weights and plays
other rollouts. `--report` prints means over seeds and rerolls with 95% intervals.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from _optima_problems import PROBLEMS
from optima import Run, change, config_of

SERVED = "embedded-tiny-served-varied"
"""The model of `optima.py` with one head of 32 channels: vLLM's CPU attention takes none of 16."""
CORRECTIONS: dict[str, dict[str, Any]] = {
    "capped": {"importance_cap": 2.0},
    "behaviour": {"old_logprobs": "behaviour"},
    "none": {"name": "_uncorrected:Uncorrected"},
}
"""Settings of the loss for stale actions."""


def train(
    problem: str,
    method: str,
    seed: int,
    staleness: int,
    correction: str | None,
    urls: Mapping[str, str] | None,
    steps: int | None = None,
    epochs: int | None = None,
    reroll: int = 0,
) -> dict[str, Any]:
    """One run's exact values and mean metrics; `urls` are the servers of its agents, if any."""
    import torch

    from colearn.config import Config
    from colearn.experiment.loop import Experiment

    torch.set_num_threads(1)
    chosen = PROBLEMS[problem]
    config = config_of(Run(method, problem, "recipe", seed, steps or chosen.steps))
    generator: dict[str, Any] = {"name": "transformers", "copy": True}
    if urls is not None:
        model = f"{SERVED}:{seed}"
        generator = {"name": "vllm_server", "url": dict(urls)}
        change(config, {"models.*.path": model, "critic.path": model})
    change(
        config,
        {
            "train.staleness": staleness,
            "run.generator": generator,
            "run.seed": seed + 1000 * reroll,
            **({} if correction is None else {"algorithm.loss": CORRECTIONS[correction]}),
            **({"train.epochs": epochs} if epochs else {}),
        },
    )
    started = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        Experiment(Config.model_validate(config), Path(folder) / "run").run()
        text = (Path(folder) / "run" / "metrics.jsonl").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    curve = [line["metrics"] for line in lines if line["kind"] == "evaluation"]
    updates = [line["metrics"] for line in lines if line["kind"] == "update"]

    gaps = [v for one in updates for key, v in one.items() if key.startswith("parity_gap/")]

    def mean(suffix: str) -> float:
        values = [v for one in updates for key, v in one.items() if key.endswith(suffix)]
        return round(sum(values) / len(values), 4) if values else 0.0

    def seconds(part: str) -> list[float]:
        """Of each iteration; several generators of one part are added up."""
        return [
            sum(v for k, v in one.items() if k.startswith(f"seconds/{part}")) for one in updates
        ]

    whole = sum(seconds("rollout")) + sum(one["seconds/update"] for one in updates)
    transfers = seconds("transfer/")
    return {
        "problem": problem,
        "method": method,
        "seed": seed,
        "reroll": reroll,
        "generator": generator["name"],
        "staleness": staleness,
        "correction": correction,
        "exact_return": round(curve[-1]["exact_return"] / chosen.scale, 3),
        "exact_return_cold": round(curve[-1]["exact_return_cold"] / chosen.scale, 3),
        "curve": [round(one["exact_return"] / chosen.scale, 3) for one in curve],
        "logprob_mismatch": mean("logprob_mismatch"),
        "largest_gap": max(gaps, default=None),
        "mean_staleness": mean("staleness"),
        "iterations": len(updates),
        "iterations_per_hour": round(3600 * len(updates) / whole, 1),
        "rollout_seconds": seconds("rollout"),
        "update_seconds": [
            one["seconds/update"] - transfer
            for one, transfer in zip(updates, transfers, strict=True)
        ],
        "transfer_seconds": transfers,
        "overlap_seconds": seconds("overlap"),
        "cpu_seconds": round(time.process_time() - started, 1),
    }


def simulated(parts: Mapping[str, Any], staleness: int) -> float:
    """Iterations per hour that the schedule's simulation expects, from a run at staleness 0."""
    from colearn.estimate.schedule import simulate

    transfers = parts["transfer_seconds"]
    schedule = simulate(
        parts["rollout_seconds"],
        parts["update_seconds"],
        transfer=sum(transfers) / len(transfers),
        staleness=staleness,
    )
    return round(3600 / schedule.seconds, 1)


def servers(problem: str, seed: int, python: str | None) -> AbstractContextManager[dict[str, str]]:
    """A server for each agent of a problem, on the model of its shape."""
    from _servers import served

    from colearn.config import Config, build_task
    from colearn.models.embedded import embedded_model
    from colearn.models.embedded_recipes import RECIPES

    RECIPES[SERVED] = replace(RECIPES["embedded-tiny-varied"], heads=1)
    config = config_of(Run("magrpo", problem, "recipe", seed, PROBLEMS[problem].steps))
    task = build_task(Config.model_validate(config))
    return served(embedded_model(task, f"{SERVED}:{seed}", "models"), task.agents, python)


def key_of(run: Mapping[str, Any]) -> tuple[Any, ...]:
    """What makes two runs the same, beside their length."""
    own = (run[key] for key in ("problem", "method", "seed", "staleness", "correction"))
    return *own, run.get("reroll", 0)


def report(runs: Sequence[Mapping[str, Any]]) -> str:
    """A table of exact values by problem, method, staleness and correction.

    Differences from staleness 0 are paired by seed and reroll; one without a pair is left out.
    """
    by_way: dict[tuple[Any, ...], dict[tuple[int, int], float]] = {}
    for run in runs:
        problem, method, seed, staleness, correction, reroll = key_of(run)
        way = problem, method, staleness, correction
        by_way.setdefault(way, {})[seed, reroll] = run["exact_return"]
    lines = [
        "| problem | method | staleness | exact value | less that of 0 | by seed |",
        "|---|---|---|---|---|---|",
    ]
    for (problem, method, staleness, correction), values in by_way.items():
        fresh = by_way.get((problem, method, 0, None), {})
        differences = [
            value - fresh[seed] for seed, value in values.items() if staleness and seed in fresh
        ]
        setting = f"{staleness}, {correction}" if staleness else "0"
        each = ", ".join(f"{value:.2f}" for value in values.values())
        lines.append(
            f"| {problem} | {method} | {setting} | {spread(list(values.values()))} | "
            f"{spread(differences)} | {each} |"
        )
    return "\n".join(lines)


def spread(values: Sequence[float]) -> str:
    """Mean and 95% interval over seeds; empty without values."""
    from colearn.statistics.over_seeds import estimate

    found = estimate(values)
    if found is None:
        return ""
    if found.low is None:
        return f"{found.mean:.2f}"
    return f"{found.mean:.2f} [{found.low:.2f}, {found.high:.2f}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--problem", choices=PROBLEMS, default="lock")
    parser.add_argument("--methods", nargs="+", default=["magrpo", "collm_cc"])
    parser.add_argument("--staleness", type=int, nargs="+", default=[0, 1, 4])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--first-seed", type=int, default=100)
    parser.add_argument("--reroll", type=int, default=0, help="other rollouts from equal weights")
    parser.add_argument("--steps", type=int, help="joint actions of a run; the problem's own")
    parser.add_argument("--epochs", type=int, help="passes over a batch; the recipe's own")
    parser.add_argument("--corrections", nargs="+", choices=CORRECTIONS, default=["capped"])
    parser.add_argument("--server", action="store_true", help="generate by vLLM servers")
    parser.add_argument("--python", help="interpreter of the environment with vLLM")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--report", type=Path, help="print the table of these runs, and end")
    options = parser.parse_args()
    if options.report is not None:
        print(report([json.loads(line) for line in options.report.read_text().splitlines()]))
        return
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    ways = [
        (staleness, correction)
        for staleness in options.staleness
        for correction in (options.corrections if staleness else [None])
    ]
    text = options.out.read_text() if options.out is not None and options.out.exists() else ""
    runs = [json.loads(line) for line in text.splitlines()]
    none = nullcontext(None)
    with servers(options.problem, seeds[0], options.python) if options.server else none as urls:
        for seed in seeds:
            for method in options.methods:
                own: dict[str, Any] = {}
                for staleness, correction in ways:
                    key = (options.problem, method, seed, staleness, correction, options.reroll)
                    earlier = next((run for run in runs if key_of(run) == key), None)
                    if earlier is not None:
                        own = own if staleness else earlier
                        continue
                    if own:
                        expected = simulated(own, staleness)
                        print(f"staleness {staleness}: {expected} an hour expected", flush=True)
                    run = train(
                        options.problem,
                        method,
                        seed,
                        staleness,
                        correction,
                        urls,
                        options.steps,
                        options.epochs,
                        options.reroll,
                    )
                    if own:
                        run["iterations_per_hour_simulated"] = expected
                    elif not staleness:
                        own = run
                    line = json.dumps(run)
                    print(line, flush=True)
                    if options.out is not None:
                        with options.out.open("a") as file:
                            file.write(line + "\n")


if __name__ == "__main__":
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    main()
