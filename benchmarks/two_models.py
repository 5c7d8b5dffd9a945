"""Two models that generate concurrently on a CPU, against one after the other.

    python benchmarks/two_models.py [--threads 2]

Two agents of StrBuild, each a model of its own. On the CPU all bases are one
place and take turns; here each is a place of its own in every second round, so that the grower asks
them in two threads. The draws are the same either way, and that is checked.
"""

from __future__ import annotations

import argparse
import statistics
import time
from unittest.mock import patch

import torch

from colearn.config import load_config
from colearn.experiment.assemble import assemble
from colearn.generate.transformers import TransformersEngine
from colearn.rollout.grow import grow
from colearn.rollout.shapes import Chain


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--episodes", type=int, nargs="+", default=[16, 256])
    parser.add_argument("--models", nargs="+", default=["embedded"])
    parser.add_argument("--threads", type=int, default=1, help="of torch, for each model")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    print("| model | episodes | in turn (s) | at once (s) | in turn / at once |")
    print("|---|---|---|---|---|")
    for model in arguments.models:
        config = {
            "task": {"name": "str_build", "prompt": "compact", "font": "small", "horizon": 2},
            "models": {"*": {"path": model, "lora": None}},
            "agents": {"*": {"sampling": {"max_tokens": 24}}},
            "algorithm": {"name": "magrpo"},
            "run": {"device": "cpu"},
        }
        team = assemble(load_config(config))
        for episodes in arguments.episodes:
            items = (list(team.run.task.items("train")) * episodes)[:episodes]
            times: dict[bool, list[float]] = {False: [], True: []}
            said = set()
            for number in range(2 * arguments.rounds + 2):
                apart = bool(number % 2)
                place = property(lambda self, apart=apart: id(self.base) if apart else "cpu")
                with patch.object(TransformersEngine, "place", place):
                    start = time.perf_counter()
                    trees, _ = grow(team.run.task, items, team.players, Chain(), seed=1)
                    seconds = time.perf_counter() - start
                said.add(repr([[node.actions for node in tree.nodes] for tree in trees]))
                if number > 1:  # the first of each kind warms up
                    times[apart].append(seconds)
            assert len(said) == 1, "a draw depends on when it was made"
            turn, once = (statistics.median(times[apart]) for apart in (False, True))
            print(f"| {model} | {episodes} | {turn:.3f} | {once:.3f} | {turn / once:.2f} |")


if __name__ == "__main__":
    main()
