"""How cost grows: packed trees against paths, late turns against early ones, a critic's share.

    python benchmarks/scaling.py tree-2 tree-3 turns critic critic-groups critic-trees joint-chains

A JSON line for each. Model and words are those of `vs_comlrl.py`. Processor seconds of one
process, both sides interleaved, so that other programs disturb little. A ratio is the median over
rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from _turns import seconds_by_turn
from vs_comlrl import NEW_TOKENS, TASK, SharedWords, make_folders

from colearn.config import Config
from colearn.rollout.grow import grow
from colearn.training.load_team import load_team
from colearn.training.team import Team
from colearn.training.update.build_updater import build_updater

CRITIC_ROLLOUTS: dict[str, tuple[dict[str, Any] | None, int]] = {
    "critic": (None, 10),
    "critic-groups": ({"name": "parallel", "k": 10}, 1),
    "critic-trees": ({"name": "tree", "k": 4}, 1),
}
"""CoLLM-CC's rollout, and its items for 20 joint actions."""
JOINT = {"joint-chains": ("collm_cc", 2), "joint-trees": ("magrpo", 1)}
"""Algorithm and items of an update of adapters."""
CASES = ("tree-2", "tree-3", "turns", *CRITIC_ROLLOUTS, *JOINT)


class Three(SharedWords):
    """Three turns."""

    horizon = 3


def team(
    path: str, algorithm: str, rollout: dict[str, Any] | None = None, joint: bool | None = None
) -> Team:
    """With `joint` given, all models are adapters of one base."""
    model = {"path": path} if joint is None else {"path": path, "lora": {"rank": 16}}
    settings: dict[str, Any] = {
        "task": {"name": TASK},
        "algorithm": {"name": algorithm} | ({} if rollout is None else {"rollout": rollout}),
        "models": {"*": model},
        "agents": {"*": {"sampling": {"max_tokens": NEW_TOKENS}}},
        "critic": None if algorithm == "magrpo" else {**model, "baseline": "none"},
        "train": {"joint_passes": joint},
        "run": {"device": "cpu"},
    }
    return load_team(Config.model_validate(settings))


def seconds(call: Callable[[], Any]) -> float:
    started = time.process_time()
    call()
    return time.process_time() - started


def interleaved(one: Callable[[], Any], other: Callable[[], Any], rounds: int) -> dict[str, Any]:
    """Processor seconds of both, and how many times the first the second takes."""
    spent = [(seconds(one), seconds(other)) for _ in range(rounds)]
    return {
        "seconds": [[round(a, 2), round(b, 2)] for a, b in spent],
        "ratio": round(statistics.median(b / a for a, b in spent), 3),
    }


def tree(path: str, turns: int, rounds: int) -> dict[str, Any]:
    """One episode's update, K=4: a packed tree, then a row for each path from the root."""
    magrpo = team(path, "magrpo")
    task = magrpo.run.task if turns == 2 else Three()
    trees, _ = grow(task, [0], magrpo.players, magrpo.run.parts.rollout, seed=0)
    updater = build_updater(magrpo)

    def update(token_budget: int) -> None:
        updater.token_budget = token_budget
        updater.update(trees, 0)

    packed, paths = partial(update, updater.token_budget), partial(update, 1)
    packed()  # the first allocates
    return interleaved(packed, paths, rounds)


def joint(path: str, case: str, rounds: int) -> dict[str, Any]:
    """An update of adapters of one base: in joint passes, then in a pass for each adapter."""
    algorithm, items = JOINT[case]
    teams = [team(path, algorithm, joint=joint) for joint in (True, False)]
    run, players = teams[0].run, teams[0].players
    trees, _ = grow(run.task, range(items), players, run.parts.rollout, seed=0)
    updates = [partial(build_updater(one).update, trees, 0) for one in teams]
    for update in updates:
        update()  # the first allocates
    return interleaved(updates[0], updates[1], rounds)


def turns(path: str, rounds: int) -> dict[str, Any]:
    """16 chains of eight turns: generating in turn 2 and in turn 8, observations included."""
    chains = team(path, "collm_cc")
    by_turn = [seconds_by_turn(chains, 16, number) for number in range(rounds)]
    return {
        "seconds": [[round(second, 2) for second in one] for one in by_turn],
        "ratio": round(statistics.median(one[7] / one[1] for one in by_turn), 3),
    }


def critic(path: str, rounds: int, trees: int, case: str) -> dict[str, Any]:
    """MAGRPO on `trees` of 20 joint actions, then CoLLM-CC on as many: on ten times as many chains
    of two, on as many groups of ten chains, which share an item and its first prompts, or on the
    same trees, which leaves the critic as the only difference."""
    shape, items_per_tree = CRITIC_ROLLOUTS[case]
    teams = {"magrpo": team(path, "magrpo"), "collm_cc": team(path, "collm_cc", shape)}
    updaters = {name: build_updater(one) for name, one in teams.items()}
    items = {"magrpo": list(range(trees)), "collm_cc": list(range(items_per_tree * trees))}

    def iteration(name: str) -> None:
        one = teams[name]
        grown, counts = grow(one.run.task, items[name], one.players, one.run.parts.rollout, seed=0)
        assert counts.joint_actions == 20 * trees
        updaters[name].update(grown, 0)

    return interleaved(partial(iteration, "magrpo"), partial(iteration, "collm_cc"), rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="+", choices=CASES)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--trees", type=int, default=4, help="of MAGRPO, beside a critic")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        make_folders(folder)
        sys.path.insert(0, str(folder / "entry"))
        path = str(folder / "model")
        for case in options.cases:
            if case.startswith("tree"):
                result = tree(path, int(case[-1]), options.rounds)
            elif case in JOINT:
                result = joint(path, case, options.rounds)
            elif case == "turns":
                result = turns(path, options.rounds)
            else:
                result = critic(path, options.rounds, options.trees, case)
            print(json.dumps({"case": case, "threads": options.threads, **result}), flush=True)


if __name__ == "__main__":
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    main()
