"""Cost of a critic for a search team: MAPPO against MHGPO's three samplings.

    python benchmarks/mhgpo_cost.py [--iterations 4] [--answers 192] [--rounds 2]

Every algorithm of configs/tiny/search_mhgpo.yaml trains the same small shared model in a process of
its own, on as many questions as make about as many answers of roles an update: groups of a
question cost answers, a critic costs weights. Seconds are the process's own CPU time, on one
thread, so a busy machine changes little. Memory is its peak over what it held before anything was
loaded. A row is printed as soon as its algorithm has run.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

EXPECTED = {"mappo": 3.0, "mhgpo": 12.0, "mhgpo_rr": 10.5, "mhgpo_is": 27.0}
"""Answers of roles to a question, by the config's groups and probabilities."""
COLUMNS = ("trained", "generations", "rollout", "update", "memory")


def main() -> None:
    """Print the table."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--iterations", type=int, default=4)
    arguments.add_argument("--answers", type=int, default=192, help="an update, about")
    arguments.add_argument("--rounds", type=int, default=2)
    arguments.add_argument("--one", choices=tuple(EXPECTED))
    given = arguments.parse_args()
    if given.one:
        questions = round(given.answers / EXPECTED[given.one])
        print(json.dumps(measure(given.one, given.iterations, questions)))
        return
    titles = "trained parameters | answers a question | rollout, ms an answer | update | peak MB"
    print(f"| algorithm | {titles} |\n|---|---|---|---|---|---|")
    sizes = ["--iterations", str(given.iterations), "--answers", str(given.answers)]
    for name in EXPECTED:
        runs = [_of_process(name, sizes) for _ in range(given.rounds)]
        mean = {key: sum(run[key] for run in runs) / len(runs) for key in COLUMNS}
        print(
            f"| `{name}` | {mean['trained']:,.0f} | {mean['generations']:.1f} | "
            f"{mean['rollout']:.2f} | {mean['update']:.2f} | {mean['memory']:.0f} |",
            flush=True,
        )


def _of_process(name: str, sizes: list[str]) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, __file__, "--one", name, *sizes],
        check=True,
        capture_output=True,
        text=True,
    )
    measurement: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return measurement


def measure(name: str, iterations: int, questions: int) -> dict[str, float]:
    """Of one algorithm: means over iterations, the first one left out; milliseconds an answer."""
    import torch

    from colearn.config import load_config
    from colearn.rollout.grow import grow
    from colearn.runs.comparison.plan import config_of
    from colearn.training.load_team import load_team
    from colearn.training.update.build_updater import build_updater

    torch.set_num_threads(1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    shipped = load_config("tiny/search_mhgpo", ["run.device=cpu"])
    config = config_of(shipped, name)
    parts = load_team(config)
    updater = build_updater(parts)
    assert updater is not None
    train = parts.run.task.items("train")
    items = [train[number % len(train)] for number in range(questions)]
    spent = {"rollout": 0.0, "update": 0.0}
    answers = 0
    for iteration in range(iterations + 1):
        began = time.process_time()
        trees, counts = grow(
            parts.run.task,
            items,
            parts.players,
            parts.run.parts.rollout,
            seed=iteration,
            credit=parts.run.parts.credit,
            first_episode=iteration * questions,
        )
        grown = time.process_time()
        updater.update(trees, iteration)
        if iteration:
            spent["rollout"] += grown - began
            spent["update"] += time.process_time() - grown
            answers += counts.generations
    sizes = [sum(w.numel() for w in one.weights().values()) for one in parts.learners.values()]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        **{part: 1e3 * seconds / answers for part, seconds in spent.items()},
        "generations": answers / questions / iterations,
        "trained": float(sum(sizes)),
        "memory": (peak - before) / 1024,
    }


if __name__ == "__main__":
    main()
