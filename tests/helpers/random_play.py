"""Episodes of random play on every shipped task."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from harbor_tasks import write_task

from colearn.config import build_task, load_config
from colearn.contract import DecPOMDP, View
from colearn.contract.types import Tree
from colearn.rollout.agents import Program
from colearn.rollout.grow import grow
from colearn.rollout.shapes import Chain


class Locked:
    """A player that cannot leave its process, like one with a model; it acts at random."""

    def __init__(self) -> None:
        self.lock = threading.RLock()

    def act(self, view: View) -> str:
        legal = view.task.legal_action(view.state, view.seat, view.rng)
        return f"a{view.rng.integers(9)}" if legal is None else legal


ROWS = [{"prompt": f"paint {k}", "colour": c} for k, c in enumerate(("red", "blue") * 5)]
PRESS = '<tool_call>{"name": "press", "arguments": {"colour": "red"}}</tool_call>'
GRAPH = """
items: questions.jsonl
nodes:
  - {name: query, role: rewriter, prompt: "words for {question}"}
  - {name: answer, role: answerer, prompt: "{query} {question}"}
rewards:
  - {score: f1, field: answer, gold: answers}
"""


def settings_of(name: str, folder: Path) -> dict[str, Any]:
    """What a task needs beside its name."""
    if name in ("dataset", "environment"):
        (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, ROWS)))
    if name == "dataset":
        reward = "tests.helpers.reward_functions:matches"
        return {"path": str(folder / "rows.jsonl"), "reward": reward, "words": ["red", "blue"]}
    if name == "environment":
        words = [PRESS, PRESS.replace("red", "blue"), "done"]
        target = "tests.helpers.trl_environments:Buttons"
        return {"factory": target, "path": str(folder / "rows.jsonl"), "words": words}
    if name == "harbor":
        write_task(folder / "walls" / "one")
        return {"path": str(folder / "walls"), "words": ["echo red > answer", "done"]}
    if name == "reasoning_gym":
        pytest.importorskip("reasoning_gym")
        return {"data": "chain_sum", "size": 20, "test_size": 4}
    if name == "textarena":
        pytest.importorskip("textarena")
        return {"env": "TicTacToe-v0", "horizon": 9}
    if name == "workflow":
        rows = [{"question": f"q{n}", "answers": [f"a{n}"]} for n in range(5)]
        (folder / "questions.jsonl").write_text("\n".join(map(json.dumps, rows)))
        (folder / "graph.yaml").write_text(GRAPH)
        return {"graph": str(folder / "graph.yaml")}
    return {}


def task_of(name: str, folder: Path) -> DecPOMDP[Any, Any]:
    config = load_config({"task": {"name": name, **settings_of(name, folder)}, "models": {}})
    task: DecPOMDP[Any, Any] = build_task(config)
    return task


def random_play(
    task: DecPOMDP[Any, Any], pool: Any = None, order: Any = "lockstep"
) -> list[Tree[Any]]:
    """Two episodes of random play."""
    players = dict.fromkeys(task.agents, Program(Locked()))
    items = task.items("train")[:2]
    trees, _ = grow(task, items, players, Chain(), seed=7, pool=pool, order=order)
    return trees
