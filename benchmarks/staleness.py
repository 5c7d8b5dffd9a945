"""Exact value that rollouts ahead of updates reach, at equal joint actions.

    python benchmarks/staleness.py --staleness 0 1 4 --seeds 2 --out runs.jsonl
    python benchmarks/staleness.py --staleness 0 1 4 --server --python .venv-vllm/bin/python

Problem and recipe are those of `optima.py`; every run decodes on a copy of the weights. Above 0 the
loss weighs actions by truncated importance weights (`--cap`; 0 leaves them out, and takes the
generator's log-probabilities as the old ones). With `--server` a vLLM server generates for each
agent; they are started once. Iterations per hour leave evaluations out; stalenesses take turns.
After a run at staleness 0 the schedule's simulation predicts those that follow, from its seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from _optima_problems import PROBLEMS
from optima import Run, change, config_of

SERVED = "embedded-tiny-served-varied"
"""The model of `optima.py` with one head of 32 channels: vLLM's CPU attention takes none of 16."""


def train(
    problem: str,
    method: str,
    seed: int,
    staleness: int,
    cap: float,
    urls: Mapping[str, str] | None,
    steps: int | None = None,
    epochs: int | None = None,
) -> dict[str, Any]:
    """One run's exact values and mean metrics; `urls` are the servers of its agents, if any."""
    import torch

    from colearn.config import Config
    from colearn.experiment.loop import Experiment

    torch.set_num_threads(1)
    chosen = PROBLEMS[problem]
    config = config_of(Run(method, problem, "recipe", seed, steps or chosen.steps))
    loss: dict[str, Any] = {"importance_cap": cap} if cap else {"old_logprobs": "behaviour"}
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
            **({"algorithm.loss": loss} if staleness else {}),
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
        "generator": generator["name"],
        "staleness": staleness,
        "cap": cap,
        "exact_return": round(curve[-1]["exact_return"] / chosen.scale, 3),
        "exact_return_cold": round(curve[-1]["exact_return_cold"] / chosen.scale, 3),
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--problem", choices=PROBLEMS, default="lock")
    parser.add_argument("--methods", nargs="+", default=["magrpo", "collm_cc"])
    parser.add_argument("--staleness", type=int, nargs="+", default=[0, 1, 4])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--first-seed", type=int, default=100)
    parser.add_argument("--steps", type=int, help="joint actions of a run; the problem's own")
    parser.add_argument("--epochs", type=int, help="passes over a batch; the recipe's own")
    parser.add_argument("--cap", type=float, default=2.0)
    parser.add_argument("--server", action="store_true", help="generate by vLLM servers")
    parser.add_argument("--python", help="interpreter of the environment with vLLM")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    none = nullcontext(None)
    with servers(options.problem, seeds[0], options.python) if options.server else none as urls:
        for seed in seeds:
            for method in options.methods:
                own: dict[str, Any] = {}
                for staleness in options.staleness:
                    if own:
                        expected = simulated(own, staleness)
                        print(f"staleness {staleness}: {expected} an hour expected", flush=True)
                    run = train(
                        options.problem,
                        method,
                        seed,
                        staleness,
                        options.cap,
                        urls,
                        options.steps,
                        options.epochs,
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
