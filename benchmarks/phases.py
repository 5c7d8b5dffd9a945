"""Time of an iteration by phase, and each phase's share of the machine's matrix rate.

    python benchmarks/phases.py --algorithm magrpo --episodes 4      # one JSON line

Model and task are those of `vs_comlrl.py`. Products are counted from the shapes: 2 * weights for
each token of a forward pass and three times that for a trained one, the output layer at action
tokens only, attention left out. Times are processor seconds of all threads, which other programs
disturb little. Peaks are of resident memory, the interpreter and libraries included. The matrix
rate is the best of square float32 products of 512 to 2,048 in the same process, so a share of 1 is
the hardware's limit.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from vs_comlrl import NEW_TOKENS, TASK, make_folders, peak_memory


def matrix_rate() -> float:
    """FLOP per processor second of the best square product."""
    best = 0.0
    for size in (512, 1024, 2048):
        left, right = torch.randn(size, size), torch.randn(size, size)
        for _ in range(4):
            started = time.process_time()
            left @ right
            best = max(best, 2 * size**3 / (time.process_time() - started))
    return best


def forget_peak() -> None:
    """Reset the kernel's mark of this process's highest resident memory."""
    Path("/proc/self/clear_refs").write_text("5")


def flop(team: Any, trees: Any) -> dict[str, float]:
    """Products of a rollout, and of forward and backward over its packed rows."""
    from colearn.training.learners.packed_rows import actor_rows

    base = next(iter(team.networks.values())).base
    head = base.config.vocab_size * base.config.hidden_size
    weights = sum(p.numel() for p in base.causal.parameters()) - head
    rows = [
        row for tree in trees for agent in team.run.task.agents for row in actor_rows(tree, agent)
    ]
    tokens = sum(len(row.tokens) for row in rows)
    actions = sum(row.action_tokens for row in rows)
    return {
        "rollout": 2.0 * (tokens * weights + actions * head),
        "update": 6.0 * (tokens * weights + actions * head),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--algorithm", default="magrpo")
    parser.add_argument("--episodes", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--budget", type=int, default=None, help="train.token_budget")
    parser.add_argument("--checkpointing", action="store_true", help="models.*.checkpointing")
    parser.add_argument(
        "--profile", type=Path, default=None, help="writes torch's table of operators"
    )
    options = parser.parse_args()
    torch.set_num_threads(options.threads)

    from colearn.config import Config
    from colearn.rollout.grow import grow
    from colearn.training.load_team import load_team
    from colearn.training.update.build_updater import build_updater

    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        make_folders(folder)
        sys.path.insert(0, str(folder / "entry"))
        path = str(folder / "model")
        settings: dict[str, Any] = {
            "task": {"name": TASK},
            "algorithm": {"name": options.algorithm},
            "models": {"*": {"path": path, "checkpointing": options.checkpointing}},
            "agents": {"*": {"sampling": {"max_tokens": NEW_TOKENS}}},
            "critic": None if options.algorithm == "magrpo" else {"path": path, "baseline": "none"},
            "run": {"device": "cpu"},
        }
        if options.budget:
            settings["train"] = {"token_budget": options.budget}
        team = load_team(Config.model_validate(settings))
        updater = build_updater(team)
        items = list(range(options.episodes))
        spent: dict[str, list[float]] = {"rollout": [], "update": []}
        peaks = {"rollout": 0, "update": 0}
        trees: Any = []
        for number in range(options.rounds + 1):
            forget_peak()
            started = time.process_time()
            trees, _ = grow(team.run.task, items, team.players, team.run.parts.rollout, seed=number)
            grown = time.process_time()
            peaks["rollout"] = max(peaks["rollout"], peak_memory())
            forget_peak()
            updater.update(trees, 0)
            peaks["update"] = max(peaks["update"], peak_memory())
            if number:
                spent["rollout"].append(grown - started)
                spent["update"].append(time.process_time() - grown)
        rate = matrix_rate()
        work = flop(team, trees)
        best = {name: min(times) for name, times in spent.items()}
        actions = sum(len(tree.nodes) - 1 for tree in trees)
        print(
            json.dumps(
                {
                    "algorithm": options.algorithm,
                    "episodes": options.episodes,
                    "joint_actions": actions,
                    "joint_actions_per_cpu_second": round(actions / sum(best.values()), 3),
                    "matrix_gflops": round(rate / 1e9, 1),
                    "cpu_seconds": {name: round(value, 3) for name, value in best.items()},
                    "share": {
                        name: round(work[name] / value / rate, 3) for name, value in best.items()
                    },
                    "peak_gib": {name: round(peak / 2**30, 2) for name, peak in peaks.items()},
                }
            )
        )
        if options.profile:
            with torch.profiler.profile() as profile:
                grow(team.run.task, items, team.players, team.run.parts.rollout, seed=99)
            text = profile.key_averages().table(sort_by="self_cpu_time_total", row_limit=25)
            with torch.profiler.profile() as profile:
                updater.update(trees, 0)
            text += profile.key_averages().table(sort_by="self_cpu_time_total", row_limit=25)
            options.profile.write_text(text)


if __name__ == "__main__":
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    main()
