"""A trained workflow, each role behind a server of its own: the tokens of the trainer."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest
from exported import serving
from tiny import save_model

from colearn.config import load_config
from colearn.contract.types import Tree
from colearn.deploy.export import export_run
from colearn.deploy.play import load_source, make_team, play, play_item
from colearn.models.load import resolve_device
from colearn.programs.workflow import Tool, Workflow
from colearn.runs.record import RunFolder
from colearn.training.evaluation.evaluate import evaluate_team
from colearn.training.load_team import load_team
from colearn.training.loop import Experiment
from colearn.training.processes import Processes

pytestmark = pytest.mark.slow


class Desk(Workflow[str]):
    """Branches at the same time, a role in the context it has, a tool between them, a loop."""

    agents = ("clerk", "reader", "chief")
    horizon = 8
    measures = ("letters",)

    def __init__(self) -> None:
        self.tools = (Tool(self.count),)

    def items(self, split):
        return ["ash", "birch", "cedar"]

    async def count(self, text: str) -> int:
        """How many letters a text has."""
        return len(text)

    async def run(self, team, item):
        import asyncio

        async def branch(part: str):
            note = await team.clerk(f"note {part}")
            return await team.reader(f"read {await team.count(note)} {note}")

        read = await asyncio.gather(*(branch(part) for part in item[:2]))
        said = await team.chief(f"sum {' '.join(read)}")
        for _ in range(2):
            said = await team.chief(f"again {await team.count(said)}", fresh=False)
            if await team.count(said) % 2:
                break
        team.measure(letters=len(said))
        team.reward(0.01 * len(said))


def ids(tree: Tree[Any]) -> list[dict[str, tuple[int, ...]]]:
    return [{agent: a.tokens for agent, a in node.actions.items()} for node in tree.nodes]


def test_roles_behind_servers_answer_as_in_training_under_greedy_decoding(tmp_path):
    config = {
        "task": {"name": f"{__name__}:Desk"},
        "models": {"*": {"path": save_model(tmp_path), "learning_rate": 1e-2}},
        "agents": {"*": {"sampling": {"max_tokens": 6}}},
        "algorithm": {"name": "mhgpo"},
        "train": {"environment_steps": 24, "episodes": 3},
        "evaluation": {"episodes": 3, "greedy": True},
        "run": {"device": "cpu"},
    }
    Experiment(load_config(config), tmp_path / "run").run()
    folders = export_run(tmp_path / "run", tmp_path / "roles")
    source = load_source(str(tmp_path / "run"))
    parts = load_team(source)
    parts.load(RunFolder(tmp_path / "run").checkpoints.choose().path)
    local = evaluate_team(
        parts.run.task,
        parts.players,
        source.evaluation,
        seed=source.run.seed,
        credit=parts.run.parts.credit,
        cast=parts.run.cast,
        processes=Processes(resolve_device("cpu")),
    )
    assert set(folders) == set(parts.run.task.agents)
    with contextlib.ExitStack() as stack:
        addresses = [
            f"{role}={stack.enter_context(serving(folder, '--device', 'cpu')).url}"
            for role, folder in folders.items()
        ]
        team = make_team(source, parts.run.task.agents, addresses)
        remote = asyncio.run(
            play(
                parts.run.task,
                team,
                source.evaluation,
                seed=source.run.seed,
                credit=parts.run.parts.credit,
            )
        )
        team = make_team(source, parts.run.task.agents, addresses)
        alone = asyncio.run(play_item(parts.run.task, team, local.trees[1].item))
    assert not remote.lost and len(remote.episodes) == 3
    for episode, tree in zip(remote.episodes, local.trees, strict=True):
        assert ids(episode.tree) == ids(tree)
        assert episode.tree.nodes[-1].state == tree.nodes[-1].state
    assert ids(alone.tree) == ids(local.trees[1])
    timing = {"response_seconds": 0.0}
    assert remote.metrics | timing == local.metrics | timing
