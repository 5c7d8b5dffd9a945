"""Kill a training run and a comparison at random moments, go on, and compare bit for bit.

    python benchmarks/kills.py --kills 100 --comparison-kills 20

A training run is a process that is killed (SIGKILL) after a random time and started again with
--resume, until it ends; then the next run begins. A comparison is killed with the runs that it
has started, or one of these alone. What each leaves must be what an uninterrupted one leaves, but
for what a clock says; and a kill may cost no more than what followed the last checkpoint.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from colearn.config import Config, build_task, dump_config, load_config
from colearn.experiment.loop import Experiment
from colearn.models.embedded import embedded_model
from colearn.record import ComparisonFolder, RunFolder

SETTINGS: dict[str, Any] = {
    "models": {"*": {"path": "embedded-tiny", "learning_rate": 3e-4}},
    "agents": {"*": {"sampling": {"max_tokens": 8}}},
    "critic": {"path": "embedded-tiny", "learning_rate": 3e-3},
    "task.horizon": 2,
    "train.environment_steps": 32,
    "train.episodes": 2,
    "evaluation.every": 3,
    "evaluation.episodes": 2,
    "evaluation.repeats": 1,
    "run.device": "cpu",
    "run.checkpoint_every": 2,
    "compare.algorithms": {"collm_cc": {}, "magrpo": {"algorithm.rollout.k": 2}},
    "compare.seeds": [0],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--comparison-kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    rng = random.Random(chosen.seed)
    config = load_config("quickstart", SETTINGS)
    embedded_model(build_task(config), "embedded-tiny", "models.*.path")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        print(json.dumps(kill_runs(config, folder / "runs", chosen.kills, rng), indent=1))
        if chosen.comparison_kills:
            found = kill_comparisons(config, folder, chosen.comparison_kills, rng)
            print(json.dumps(found, indent=1))


def kill_runs(config: Config, folder: Path, kills: int, rng: random.Random) -> dict[str, Any]:
    """Kill runs until `kills` are made; what was found."""
    started = time.perf_counter()
    wait(fork_run(config, folder / "whole", resume=False))
    seconds = time.perf_counter() - started
    whole = left(RunFolder(folder / "whole"))
    made, runs, same, lost, before_any = 0, 0, 0, [], 0
    while made < kills:
        run = RunFolder(folder / f"killed-{runs}")
        while run.status != "finished":
            child = fork_run(config, run.path, resume=run.status != "not started")
            if made < kills:
                time.sleep(rng.uniform(0, seconds))
                if os.waitpid(child, os.WNOHANG)[0]:
                    continue  # it had ended
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                made += 1
                reached = max((line.iteration for line in run.lines()), default=0)
                newest = run.checkpoints.newest()
                before_any += newest is None
                lost.append(reached - (0 if newest is None else newest.iteration))
            else:
                wait(child)
        same += left(run) == whole
        runs += 1
        print(f"{made} kills, {runs} runs, {same} as the uninterrupted one", flush=True)
    return {
        "kills of a run": made,
        "runs": runs,
        "bit for bit as the uninterrupted one": same,
        "most iterations lost (a checkpoint every 2)": max(lost),
        "kills before the first checkpoint": before_any,
        "seconds of an uninterrupted run": round(seconds, 1),
    }


def fork_run(config: Config, folder: Path, *, resume: bool) -> int:
    """A process of its own that makes the run; its number."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        Experiment(config, folder, resume=resume).run()
        status = 0
    finally:
        os._exit(status)


def wait(child: int) -> None:
    _, status = os.waitpid(child, 0)
    if status:
        raise SystemExit(f"a run that nobody killed ended with status {status}")


def kill_comparisons(
    config: Config, folder: Path, kills: int, rng: random.Random
) -> dict[str, Any]:
    file = folder / "kills.yaml"
    file.write_text(dump_config(config))
    command = [sys.executable, "-m", "colearn", "compare", str(file), "--workers", "2", "--out"]
    started = time.perf_counter()
    subprocess.run([*command, str(folder / "whole")], check=True, stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - started
    whole = [left(run) for _, run in ComparisonFolder(folder / "whole").planned()]
    made, comparisons, same, alone = 0, 0, 0, 0
    while made < kills:
        out = folder / f"killed-{comparisons}"
        code = None
        while code != 0:
            process = subprocess.Popen([*command, str(out)], stdout=subprocess.DEVNULL)
            if made < kills:
                time.sleep(rng.uniform(0, seconds))
                if process.poll() is None:
                    below = children(process.pid)
                    if below and rng.random() < 0.5:
                        os.kill(rng.choice(below), signal.SIGKILL)
                        alone += 1
                    else:
                        for number in (process.pid, *below):
                            os.kill(number, signal.SIGKILL)
                    made += 1
            code = process.wait()
        same += [left(run) for _, run in ComparisonFolder(out).planned()] == whole
        comparisons += 1
    return {
        "kills of a comparison": made,
        "of them kills of one of its runs alone": alone,
        "comparisons": comparisons,
        "bit for bit as the uninterrupted one": same,
        "seconds of an uninterrupted comparison": round(seconds, 1),
    }


def children(parent: int) -> list[int]:
    text = Path(f"/proc/{parent}/task/{parent}/children").read_text()
    return [int(number) for number in text.split()]


def left(run: RunFolder) -> dict[str, Any]:
    """What a run leaves, without what a clock says."""
    lines = [line.model_dump(exclude={"wall_seconds"}) for line in run.lines()]
    for line in lines:
        line["metrics"] = {k: v for k, v in line["metrics"].items() if "seconds" not in k}
    newest = run.checkpoints.newest()
    assert newest is not None
    sums = {
        str(path.relative_to(newest.path)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(newest.path.glob("*/*"))
    }
    return {
        "lines": lines,
        "episodes": [episode.model_dump() for episode in run.episodes()],
        "progress": newest.progress.model_dump(exclude={"wall_seconds"}),
        "checkpoints": [checkpoint.iteration for checkpoint in run.checkpoints.all()],
        "weights and optimiser": sums,
        "status": run.status,
    }


if __name__ == "__main__":
    main()
