"""Cost of AT-GRPO's greedy tree against chain sampling, and of its grouping.

    python benchmarks/at_grpo_cost.py [--iterations 4] [--episodes 32] [--rounds 3]

Both shapes draw K = 4 candidates from the same team (embedded models on Plan-Path), in turns within
one process: the tree K for every agent and turn along one spine, chains K whole episodes. Calls are
counted. An environment step is one joint action carried out: every candidate of both shapes.
Seconds are of the processor, of one thread, so that a busy machine does not count.
"""

from __future__ import annotations

import argparse
import time
from statistics import fmean
from typing import Any

SHAPES = ("greedy_tree", "parallel")
K, TURNS = 4, 4


def main() -> None:
    """Print the table."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--iterations", type=int, default=4)
    arguments.add_argument("--episodes", type=int, default=32)
    arguments.add_argument("--rounds", type=int, default=3)
    given = arguments.parse_args()
    runs = {shape: Measured(shape, given.episodes) for shape in SHAPES}
    for shape in SHAPES:
        runs[shape].iterate()
        runs[shape].rows.clear()  # the first one pays for what is made once
    for _ in range(given.rounds * given.iterations):
        for shape in SHAPES:
            runs[shape].iterate()
    print(
        "| shape | N T K | calls an episode | tokens a call | prompt tokens read a call | "
        "rollout s | advantages s | update s | environment steps/s |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for shape, run in runs.items():
        mean = {key: fmean(row[key] for row in run.rows) for key in run.rows[0]}
        whole = mean["rollout"] + mean["update"]
        print(
            f"| `{shape}` | {2 * TURNS * K} | {mean['calls']:.1f} | {mean['tokens']:.1f} | "
            f"{mean['prompt']:.1f} | {mean['rollout']:.2f} | {mean['advantages']:.4f} | "
            f"{mean['update']:.2f} | {mean['steps'] / whole:.0f} |"
        )


class Measured:
    """One shape on a team of its own."""

    def __init__(self, shape: str, episodes: int) -> None:
        import torch

        from colearn.config import Config
        from colearn.experiment.assemble import assemble

        torch.set_num_threads(1)
        config = Config.model_validate(
            {
                "task": {
                    "name": "plan_path",
                    "prompt": "compact",
                    "size": 10,
                    "turns": TURNS,
                    "train": episodes,
                },
                "algorithm": {"name": "at_grpo", "rollout": {"name": shape, "k": K}},
                "models": {"*": {"path": "embedded-tiny", "learning_rate": 1e-6}},
                "agents": {"*": {"sampling": {"max_tokens": 8}}},
                "train": {"episodes": episodes},
                "run": {"device": "cpu"},
            }
        )
        self.assembly = assemble(config)
        self.items = self.assembly.run.task.items("train")
        self.rows: list[dict[str, float]] = []

    def iterate(self) -> None:
        """One rollout and one update; a learning rate of 1e-6 leaves the team as it is."""
        from colearn.rollout.grow import grow

        parts, number = self.assembly, len(self.rows)
        assert parts.updater is not None
        began = time.process_time()
        trees, counts = grow(
            parts.run.task,
            self.items,
            parts.players,
            parts.run.parts.rollout,
            seed=number,
            credit=parts.run.parts.credit,
            first_episode=number * len(self.items),
        )
        grown = time.process_time()
        credited = [t.credited(parts.run.parts.credit(t)) for t in trees]
        parts.run.parts.advantage(credited)
        scored = time.process_time()
        parts.updater.update(trees, number)
        ended = time.process_time()
        row: dict[str, Any] = {
            "rollout": grown - began,
            "advantages": scored - grown,
            "update": ended - scored,
            "calls": counts.generations / len(self.items),
            "steps": counts.joint_actions,
            "tokens": counts.tokens / counts.generations,
            "prompt": sum(map(prompt_tokens, trees)) / counts.generations,
        }
        self.rows.append(row)


def prompt_tokens(tree: Any) -> int:
    """Read into caches: a node's prompts once, however many candidates are drawn from them."""
    spoken = {node.parent for node in tree.nodes[1:]}
    seen = (shown for index in spoken for shown in tree.nodes[index].observations.values())
    return sum(len(shown.tokens) for shown in seen)


if __name__ == "__main__":
    main()
