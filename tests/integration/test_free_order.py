"""Who waits for whom: a slow branch holds nobody up in the free order, and lockstep repeats."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from tiny import save_model

from colearn.agents import Program
from colearn.config import Config
from colearn.experiment.assemble import assemble
from colearn.rollout.chain import Chain
from colearn.rollout.grow import Order, grow
from colearn.rollout.mhgpo import ForkOnFirst
from colearn.types import Tree
from colearn.workflow import Tool, Workflow

PATIENCE = 2.0
"""Seconds that the slow branch waits for the others, who need milliseconds."""


class Says:
    """The seat's name and a number of its own draw."""

    def act(self, view: Any) -> str:
        return f"{view.seat} {view.rng.integers(10**6)}"


class Slow(Workflow[str]):
    """The tool of the first branch that asks on a slow item ends when all the others have."""

    agents = ("asker", "answerer")
    horizon = 2
    measures = ("waited",)

    def __init__(self, others: int) -> None:
        self.others = others
        self.tools = (Tool(self.look, timeout=60.0),)
        self.lock, self.all_done = threading.Lock(), threading.Event()
        self.slow_one: str | None = None

    def items(self, split):
        return ["slow", "quick", "quick"]

    async def look(self, item: str, query: str) -> str:
        with self.lock:
            first = item == "slow" and self.slow_one in (None, query)
            if first:
                self.slow_one = query
        if first:
            return "found" if self.all_done.wait(PATIENCE) else "held up"
        return "found"

    async def run(self, team, item):
        query = await team.asker(f"ask {item}")
        found = await team.look(item, query)
        await team.answerer(f"{found}: answer {item}")
        if query != self.slow_one:
            with self.lock:
                self.others -= 1
                if not self.others:
                    self.all_done.set()
        team.measure(waited=float(found == "held up"))


def waited(others: int, shape: Any, order: Order) -> tuple[float, list[Tree[Any]]]:
    """Whether the slow branch saw the others wait for it."""
    task = Slow(others)
    players = {seat: Program(Says()) for seat in task.agents}
    trees, _ = grow(task, task.items("train"), players, shape, seed=0, order=order)
    return sum(leaf.metrics["waited"] for tree in trees for leaf in tree.leaves()), trees


@pytest.mark.parametrize(("shape", "others"), [(Chain(), 2), (ForkOnFirst(4), 11)])
def test_a_slow_branch_holds_up_neither_other_episodes_nor_its_siblings(shape, others):
    held, trees = waited(others, shape, "free")
    assert held == 0.0
    for tree in trees:
        assert [node.index for node in tree.nodes] == list(range(len(tree.nodes)))
        assert [node.path for node in tree.nodes] == sorted(
            (node.path for node in tree.nodes), key=lambda path: (len(path), path)
        )
        for node in tree.nodes[1:]:
            assert tree.nodes[node.parent].path == node.path[:-1]


def test_lockstep_waits_for_the_slow_branch():
    """The check above can fail."""
    assert waited(2, Chain(), "lockstep")[0] == 1.0


def test_a_workflow_in_lockstep_repeats_bit_for_bit(tmp_path):
    config = Config.model_validate(
        {
            "task": {"name": "search_mhgpo", "prompt": "compact", "people": 6, "towns": 2},
            "algorithm": {"name": "mhgpo"},
            "models": {"shared": {"path": save_model(tmp_path)}},
            "agents": {"*": {"model": "shared", "sampling": {"max_tokens": 6}}},
            "run": {"device": "cpu", "order": "lockstep"},
        }
    )

    def played() -> list[Tree[Any]]:
        parts = assemble(config)
        items = parts.task.items("train")[:3]
        return grow(parts.task, items, parts.players, parts.parts.rollout, seed=0)[0]

    one, other = played(), played()
    assert one == other
    assert any(action.logprobs for node in one[0].nodes for action in node.actions.values())
