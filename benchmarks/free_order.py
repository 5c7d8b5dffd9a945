"""Cost of a slow branch to the other branches: free order against lockstep, in one run.

    python benchmarks/free_order.py [--episodes 32] [--turns 4] [--seconds 0.04] [--rounds 3]

A workflow asks a role and then a tool, turn after turn. The tool takes `seconds`, and ten times as
long where it is slow: in one episode at every turn (`one`), or in one call of ten, by the item
(`some`). Roles are played by a program, so waiting is all there is. Lockstep steps its episodes one
after another unless it has a pool, so it is measured with as many threads as the free order, too.
"""

from __future__ import annotations

import argparse
import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from statistics import fmean
from typing import Any, Literal

from colearn.agents import Program
from colearn.contract import Rollout
from colearn.contract.seeding import derive_rng
from colearn.rollout.forks import ForkOnFirst
from colearn.rollout.grow import Order, grow
from colearn.rollout.shapes import Chain
from colearn.workflow import Tool, Workflow

TENFOLD = 10
SLOW_CALLS = 0.1
Slow = Literal["one", "some"]


class Searches(Workflow[int]):
    """A role, a tool, a role, a tool ...; `ended` holds when each branch ended."""

    agents = ("asker",)
    measures = ("turns",)

    def __init__(self, episodes: int, turns: int, seconds: float, slow: Slow) -> None:
        self.episodes, self.horizon, self.seconds, self.slow = episodes, turns, seconds, slow
        self.tools = (Tool(self.look),)
        self.ended: dict[tuple[int, str], float] = {}
        self.lock = threading.Lock()
        self.slow_branch: str | None = None

    def items(self, split: str) -> list[int]:
        """Numbers of episodes."""
        return list(range(self.episodes))

    async def look(self, item: int, turn: int, branch: str) -> str:
        """Found after a while."""
        await asyncio.sleep(self.seconds * (TENFOLD if self.is_slow(item, turn, branch) else 1))
        return "found"

    def is_slow(self, item: int, turn: int, branch: str) -> bool:
        """The branch of episode 0 that asked first always, or one call of ten."""
        if self.slow == "one":
            with self.lock:
                if item == 0 and self.slow_branch is None:
                    self.slow_branch = branch
                return item == 0 and self.slow_branch == branch
        return bool(derive_rng("slow", item, turn, branch).random() < SLOW_CALLS)

    async def run(self, team: Any, item: int) -> None:
        """Every turn's answer, then the tool."""
        branch = ""
        for turn in range(self.horizon):
            said = await team.asker(f"turn {turn}")
            branch = branch or said
            await team.look(item, turn, branch)
        with self.lock:
            self.ended[item, branch] = time.perf_counter()
        team.measure(turns=self.horizon)


class Says:
    """A number of its own draw, by which a branch is known."""

    def act(self, view: Any) -> str:
        """Of six digits."""
        return f"{view.rng.integers(10**6)}"


def main() -> None:
    """Print the tables."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--episodes", type=int, default=32)
    arguments.add_argument("--turns", type=int, default=4)
    arguments.add_argument("--seconds", type=float, default=0.04)
    arguments.add_argument("--rounds", type=int, default=3)
    given = arguments.parse_args()
    shapes: dict[str, Rollout] = {"chain": Chain(), "fork of 4": ForkOnFirst(4)}
    ways: dict[str, tuple[Order, bool]] = {
        "lockstep": ("lockstep", False),
        "lockstep, threads": ("lockstep", True),
        "free": ("free", False),
    }
    print("| slow | shape | order | branches/s | the others, s | last, s |")
    print("|---|---|---|---|---|---|")
    slows: tuple[Slow, ...] = ("one", "some")
    for slow in slows:
        for shape_name, shape in shapes.items():
            episodes = given.episodes if shape_name == "chain" else given.episodes // 4
            measurements: dict[str, list[tuple[float, float, float]]] = {way: [] for way in ways}
            for _ in range(given.rounds):
                for way, (order, threads) in ways.items():
                    task = Searches(episodes, given.turns, given.seconds, slow)
                    measurements[way].append(measure(task, shape, order, threads=threads))
            for way, rounds in measurements.items():
                rate, others, last = (fmean(column) for column in zip(*rounds, strict=True))
                print(f"| {slow} | {shape_name} | {way} | {rate:.1f} | {others:.2f} | {last:.2f} |")


def measure(
    task: Searches, shape: Rollout, order: Order, *, threads: bool
) -> tuple[float, float, float]:
    """Branches a second; seconds until all but the last tenth had ended; until the last had."""
    players = {"asker": Program(Says())}
    with ThreadPoolExecutor(256) as many:
        began = time.perf_counter()
        grow(
            task,
            task.items("train"),
            players,
            shape,
            seed=0,
            order=order,
            pool=many if threads else None,
        )
        seconds = time.perf_counter() - began
    ends = sorted(end - began for end in task.ended.values())
    most = ends[len(ends) - 1 - max(1, len(ends) // 10)]
    return len(ends) / seconds, most, ends[-1]


if __name__ == "__main__":
    main()
