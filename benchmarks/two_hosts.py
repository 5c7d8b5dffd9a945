"""Updates of two models at the same time, in threads or workers of Ray, against taking turns.

    python benchmarks/two_hosts.py [--rounds 5] [--episodes 32] [--host ray]

Two agents of StrBuild with a model each and the same trees in every round; one torch thread for
each model. Rounds alternate between both ways. The weights of both teams stay equal, and that is
checked.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import torch

from colearn.config import load_config
from colearn.experiment.loop import Experiment


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--episodes", type=int, default=32)
    parser.add_argument("--algorithm", default="magrpo")
    parser.add_argument("--model", default="embedded")
    parser.add_argument("--host", choices=["threads", "ray"], default="threads")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        teams = {
            once: Experiment(config_of(arguments, once), Path(folder) / str(once))
            for once in (False, True)
        }
        trees = teams[False].trees()
        seconds: dict[bool, list[float]] = {False: [], True: []}
        overlaps = []
        for number in range(arguments.rounds + 1):
            for once, team in teams.items():
                assert team.assembly.updater is not None
                start = time.perf_counter()
                team.assembly.updater.update(trees, number)
                end = time.perf_counter()
                if number:  # the first warms up
                    seconds[once].append(end - start)
                if number and once:
                    overlaps.append(overlap(team, start, end))
        apart = max(
            float((one - teams[True].assembly.host.learners[key].weights()[name]).abs().max())
            for key, learner in teams[False].assembly.host.learners.items()
            for name, one in learner.weights().items()
        )
        assert apart < 1e-6, f"weights differ by {apart}"
        turns, together = (statistics.median(seconds[once]) for once in (False, True))
        for team in teams.values():
            team.assembly.host.close()
        print("| updates in turns (s) | at once (s) | updates per second | busy together |")
        print("|---|---|---|---|")
        print(
            f"| {turns:.3f} | {together:.3f} | {turns / together:.2f} times | "
            f"{statistics.median(overlaps):.0%} |"
        )


def config_of(arguments: argparse.Namespace, once: bool) -> object:
    if once and arguments.host == "ray":
        host = {"name": "ray", "cpus": 1}
    else:
        host = {"name": "local", "threads": once}
    model = {"path": arguments.model, "learning_rate": 1e-3}
    return load_config(
        {
            "task": {"name": "str_build", "prompt": "compact", "font": "small", "horizon": 2},
            "models": {"*": model},
            "agents": {"*": {"sampling": {"max_tokens": 24}}},
            "algorithm": {"name": arguments.algorithm},
            "train": {"episodes": arguments.episodes},
            "run": {"device": "cpu", "host": host},
        }
    )


def overlap(team: Experiment, start: float, end: float) -> float:
    """Share of the time in which both models worked."""
    from colearn.record.time_use import OVERLAP, time_use

    return time_use(team.clock.timeline.take(start, end), (), end - start)[OVERLAP] / (end - start)


if __name__ == "__main__":
    main()
