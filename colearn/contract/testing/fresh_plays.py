"""Check whether a task plays alike in every process.

Run as a script by `check_fresh_plays`, in processes with different hash seeds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from colearn.config import build_task, load_config
from colearn.contract import DecPOMDP
from colearn.contract.seeding import derive_rng
from colearn.errors import TaskError
from colearn.registry.own_code import find_in, folders

from .check_task import JUNK, SPLITS
from .fingerprint import fingerprint

EPISODES = 4
"""Episodes of each split."""
LONGEST = 64
"""Maximum number of turns of an episode."""
HASH_SEEDS = ("1", "2", "3", "4")
"""Values of PYTHONHASHSEED, which determines the order of sets of strings: one for each process. In
one pair of processes, two strings have the same order half of the time."""

Entry = tuple[str, str]
"""A method with the place of a call, and the content of the call's result."""


def check_fresh_plays(data: Mapping[str, Any], changes: Sequence[str]) -> None:
    """Builds the config's task here and in fresh processes, and plays the same items with the same
    seeds and replies.

    Errors: TaskError, one line with the method, if the plays differ or fail in a fresh process.
    """
    expected = plays(build_task(load_config(dict(data), list(changes))))
    config = json.dumps([data, list(changes), folders()])
    with ThreadPoolExecutor(2) as pool:
        for others in pool.map(lambda seed: _fresh(config, seed), HASH_SEEDS):
            _compare(expected, others)


def _fresh(config: str, hash_seed: str) -> list[Entry]:
    """The plays of a fresh process."""
    with tempfile.TemporaryDirectory() as temporary:
        file = Path(temporary) / "plays.json"
        done = subprocess.run(
            # -P: modules of the current folder come after installed ones, as for `colearn`
            [sys.executable, "-P", "-m", __name__, str(file), config],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines() or ["nothing said"]
            raise TaskError(f"task: fails in a fresh process, though not in this one: {lines[-1]}")
        return [(str(call), str(content)) for call, content in json.loads(file.read_text())]


def plays(task: DecPOMDP[Any, Any]) -> list[Entry]:
    """Plays a few episodes of each split, and records all that agents and training see."""
    entries: list[Entry] = [("task.agents: the names", repr(task.agents))]

    def record(method: str, what: str, value: Any) -> None:
        entries.append((f"task.{method}: {what}", repr(fingerprint(value))))

    for split in SPLITS:
        items = task.items(split)
        record("items", f"the number of items of split '{split}'", len(items))
        for episode in range(EPISODES):
            number = int(derive_rng("fresh", split, episode).integers(len(items)))
            where = f"of item {number} of split '{split}'"
            record("items", f"the content {where}", items[number])
            state = task.reset(items[number], derive_rng("fresh", split, episode, "reset"))
            for turn in range(min(task.horizon, LONGEST)):
                place = f"at turn {turn} {where}"
                rng = derive_rng("fresh", split, episode, turn)
                actions = {}
                for agent in task.agents:
                    seen = task.observe(state, agent)
                    record("observe", f"what '{agent}' sees {place}", seen)
                    if seen is not None:
                        legal = task.legal_action(state, agent, rng)
                        actions[agent] = (
                            JUNK[int(rng.integers(len(JUNK)))] if legal is None else legal
                        )
                        record("legal_action", f"the reply of '{agent}' {place}", actions[agent])
                outcome = task.step(state, actions, rng)
                state = outcome.state
                record("step", f"the reward {place}", replace(outcome, state=None))
                record("global_info", f"the text {place}", task.global_info(state))
                record("metrics", f"the values {place}", task.metrics(state))
                if outcome.done:
                    break
    return entries


def _compare(expected: Sequence[Entry], others: Sequence[Entry]) -> None:
    for one, other in zip_longest(expected, others):
        if one != other:
            call = (one or other or ("task: the number of turns", ""))[0]
            raise TaskError(
                f"{call} differs between processes; let all randomness follow from the given rng "
                "(of an environment: from the `seed` of reset), and sort what comes from a set"
            )


def _main() -> None:
    file, text = sys.argv[1:]
    data, changes, own_folders = json.loads(text)
    find_in(*own_folders)
    Path(file).write_text(json.dumps(plays(build_task(load_config(data, changes)))))


if __name__ == "__main__":
    _main()
