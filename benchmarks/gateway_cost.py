"""Cost of the gateway: a program's episodes against the same work as a native workflow.

    python benchmarks/gateway_cost.py LANGGRAPH_PYTHON [--tokens 1 32] [--workers 1 2]
    python benchmarks/gateway_cost.py python --program benchmarks/gateway_relay_httpx.py

Both play the relay of `examples/gateway` with one model: all episodes are live at once, and the
rounds of the two alternate. The model has random weights, and answers end after `tokens` tokens or
at an end token that is as likely as any other: what is sampled is the same in both.
LANGGRAPH_PYTHON is the Python of an environment with LangGraph. The bound is the ratio if the
gateway cost nothing and all episodes asked at the same time, so that the model waits for the
program, as it does in lockstep.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import torch
from transformers import LlamaForCausalLM

from colearn.config import load_config
from colearn.contract import DecPOMDP, Player
from colearn.models.embedded import embedded_parts
from colearn.programs.gateway.task import Gateway
from colearn.programs.workflow import Workflow
from colearn.rollout.grow import Order, grow
from colearn.rollout.shapes import Chain
from colearn.training.load_team import load_team

EXAMPLES = Path(__file__).parents[1] / "examples" / "gateway"
COLOURS = ("red", "green", "blue", "gold")


class Relay(Workflow[str]):
    """The two calls of `relay_langgraph.py`, with its texts."""

    agents, horizon, measures = ("lookout", "painter"), 4, ("reward",)

    def items(self, split: str) -> list[str]:
        """The example's scenes."""
        import scenes

        return list(scenes.items(split))

    async def run(self, team: Any, item: str) -> None:
        """Asks the lookout, then the painter."""
        import scenes

        told = await team.lookout(f"You see: {item}. Which colour?")
        painted = await team.painter(f"The lookout says: {told}. Paint it.")
        reward = scenes.grade(item, {"lookout": told, "painter": painted})
        team.measure(reward=reward)
        team.reward(reward)

    def legal_action(self, state: Any, agent: str, rng: np.random.Generator) -> str:
        """One colour."""
        return COLOURS[int(rng.integers(len(COLOURS)))]


def main() -> None:
    """Prints the table."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("python")
    arguments.add_argument("--program", type=Path, default=EXAMPLES / "relay_langgraph.py")
    arguments.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    arguments.add_argument("--episodes", type=int, default=64)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--tokens", type=int, nargs="+", default=[1, 32])
    arguments.add_argument("--lookout", type=int, help="tokens of the lookout, if fewer")
    arguments.add_argument("--order", choices=("free", "lockstep"), default="free")
    given = arguments.parse_args()
    sys.path.insert(0, str(EXAMPLES))
    print(
        "| answers, tokens | workers | native, episodes/s | gateway, episodes/s | ratio | bound "
        "| native, CPU ms | gateway, CPU ms | program, CPU ms |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    command = (given.python, str(given.program.resolve()))
    with TemporaryDirectory() as folder:
        save_untrained(folder)
        for tokens in given.tokens:
            lengths = {"lookout": given.lookout or tokens, "painter": tokens}
            measure(
                folder, command, given.workers, given.episodes, given.rounds, lengths, given.order
            )


def save_untrained(folder: str) -> None:
    """Saves a model of the architecture of `embedded-copy` with random weights."""
    architecture, tokenizer = embedded_parts(Relay(), "embedded-copy", "models")
    torch.manual_seed(0)
    LlamaForCausalLM(architecture).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def measure(
    model: str,
    command: tuple[str, ...],
    worker_counts: Sequence[int],
    episodes: int,
    rounds: int,
    lengths: Mapping[str, int],
    order: Order,
) -> None:
    """Prints the rows of one length of each agent's answers."""
    config = load_config(
        {
            "task": {"name": "gateway_cost:Relay"},
            "algorithm": {"name": "magrpo"},
            "models": {"shared": {"path": model}},
            "agents": {
                agent: {"model": "shared", "sampling": {"max_tokens": tokens}}
                for agent, tokens in lengths.items()
            },
        }
    )
    team = load_team(config)
    players, native = team.players, team.run.task
    ways: dict[int, DecPOMDP[Any, Any]] = {0: native}
    for workers in worker_counts:
        ways[workers] = Gateway(
            ("lookout", "painter"),
            "scenes:items",
            command=command,
            workers=workers,
            grade="scenes:grade",
            horizon=4,
        )
    for task in ways.values():
        rate(task, players, 8, order)  # starts workers and threads
    rates: dict[int, list[Rate]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way, task in ways.items():
            rates[way].append(rate(task, players, episodes, order))
    plain = Rate(*(median(column) for column in zip(*rates[0], strict=True)))
    for workers in worker_counts:
        through = Rate(*(median(column) for column in zip(*rates[workers], strict=True)))
        bound = plain.own / (plain.own + through.program)
        answers = "+".join(map(str, lengths.values()))
        print(
            f"| {answers} | {workers} | {plain.episodes:.1f} | {through.episodes:.1f} "
            f"| {through.episodes / plain.episodes:.2f} | {bound:.2f} "
            f"| {plain.own:.1f} | {through.own:.1f} | {through.program:.1f} |",
            flush=True,
        )
    for task in ways.values():
        task.close()


class Rate(NamedTuple):
    """Episodes per second, and processor milliseconds per episode."""

    episodes: float
    own: float
    """Of this process: the model and the gateway."""
    program: float
    """Of the workers."""


def rate(
    task: DecPOMDP[Any, Any], players: Mapping[str, Player], episodes: int, order: Order
) -> Rate:
    """Plays episodes, all at once."""
    every = list(task.items("train"))
    items = [every[n % len(every)] for n in range(episodes)]
    program = _worker_seconds()
    started, own = time.perf_counter(), time.process_time()
    trees, _ = grow(task, items, players, Chain(), seed=0, order=order)
    seconds = time.perf_counter() - started
    assert all(tree.nodes[-1].metrics.get("failed", 0.0) == 0.0 for tree in trees)
    each = 1000 / episodes
    return Rate(
        episodes / seconds,
        (time.process_time() - own) * each,
        (_worker_seconds() - program) * each,
    )


def _worker_seconds() -> float:
    """Returns the processor time of this process's children."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):  # a process may end meanwhile
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[1]) == os.getpid():
                ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
