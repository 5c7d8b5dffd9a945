"""What a critic costs a search team: MAPPO against MHGPO's three samplings.

    python benchmarks/mhgpo_cost.py [--iterations 4] [--questions 16]

Every algorithm of configs/tiny/search_mhgpo.yaml trains the same small shared model on the same
questions, in a process of its own, in turns. Seconds are this process's own CPU time, on one
thread, so a busy machine changes little. Memory is the process's peak over what it held before
anything was loaded.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from typing import Any

NAMES = ("mappo", "mhgpo", "mhgpo_rr", "mhgpo_is")


def main() -> None:
    """Print the table."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--iterations", type=int, default=4)
    arguments.add_argument("--questions", type=int, default=16)
    arguments.add_argument("--rounds", type=int, default=2)
    arguments.add_argument("--one", choices=NAMES)
    given = arguments.parse_args()
    if given.one:
        print(json.dumps(measure(given.one, given.iterations, given.questions)))
        return
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in NAMES}
    for _ in range(given.rounds):
        for name in NAMES:
            sizes = ["--iterations", str(given.iterations), "--questions", str(given.questions)]
            done = subprocess.run(
                [sys.executable, __file__, "--one", name, *sizes],
                check=True,
                capture_output=True,
                text=True,
            )
            found[name].append(json.loads(done.stdout.splitlines()[-1]))
    columns = ("trained", "generations", "rollout", "update", "memory")
    print("| algorithm | trained parameters | answers a question | rollout s | update s | MB |")
    print("|---|---|---|---|---|---|")
    for name, runs in found.items():
        mean = {key: sum(run[key] for run in runs) / len(runs) for key in columns}
        print(
            f"| `{name}` | {mean['trained']:,.0f} | {mean['generations']:.1f} | "
            f"{mean['rollout']:.2f} | {mean['update']:.2f} | {mean['memory']:.0f} |"
        )


def measure(name: str, iterations: int, questions: int) -> dict[str, float]:
    """Of one algorithm: means over iterations, the first one left out."""
    import torch

    from colearn.comparison.plan import config_of
    from colearn.config import load_config
    from colearn.experiment.assemble import assemble
    from colearn.rollout.grow import grow

    torch.set_num_threads(1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    shipped = load_config("tiny/search_mhgpo", ["run.device=cpu"])
    config = config_of(shipped, name)
    parts = assemble(config)
    assert parts.updater is not None
    items = parts.task.items("train")[:questions]
    spent = {"rollout": 0.0, "update": 0.0, "generations": 0.0}
    for iteration in range(iterations + 1):
        began = time.process_time()
        trees, counts = grow(
            parts.task,
            items,
            parts.players,
            parts.parts.rollout,
            seed=iteration,
            credit=parts.parts.credit,
            first_episode=iteration * questions,
        )
        grown = time.process_time()
        parts.updater.update(trees, iteration)
        if iteration:
            spent["rollout"] += (grown - began) / iterations
            spent["update"] += (time.process_time() - grown) / iterations
            spent["generations"] += counts.generations / questions / iterations
    sizes = [sum(w.numel() for w in one.weights().values()) for one in parts.learners.values()]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {**spent, "trained": float(sum(sizes)), "memory": (peak - before) / 1024}


if __name__ == "__main__":
    main()
