"""From training to servers, one for each agent: the numbers and tokens of evaluation."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from exported import serving_here

from colearn.config import load_config
from colearn.contract.types import Tree
from colearn.deploy.export import export_run
from colearn.deploy.play import load_source, make_team, play
from colearn.entry.cli import main
from colearn.models.load import resolve_device
from colearn.runs.record import RunFolder
from colearn.training.evaluation.evaluate import evaluate_team
from colearn.training.load_team import load_team
from colearn.training.loop import Experiment
from colearn.training.processes import Processes

pytestmark = pytest.mark.slow

TINY = [
    "train.environment_steps=32",
    "models.*.path=embedded-tiny",
    "critic.path=embedded-tiny",
    "evaluation.repeats=2",
    "run.device=cpu",
]


@dataclass
class Deployed:
    """A run, and the addresses of its agents' servers."""

    run: Path
    addresses: list[str]

    @property
    def options(self) -> list[str]:
        return [part for address in self.addresses for part in ("--agent", address)]


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    folder = tmp_path_factory.mktemp("trained")
    Experiment(load_config("quickstart", TINY), folder / "run").run()
    folders = export_run(folder / "run", folder / "team")
    with ExitStack() as stack:
        urls = {
            name: stack.enter_context(serving_here(exported)).url
            for name, exported in folders.items()
        }
        yield Deployed(folder / "run", [f"{name}={url}" for name, url in urls.items()])


def command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str
) -> tuple[int, dict[str, Any], str]:
    """Exit code, JSON and the lines on stderr of `colearn ...`."""
    monkeypatch.setattr(sys, "argv", ["colearn", *arguments])
    capsys.readouterr()
    code = 0
    try:
        main()
    except SystemExit as stop:
        code = int(stop.code or 0)
    told = capsys.readouterr()
    return code, json.loads(told.out), told.err


def ids(tree: Tree[Any]) -> list[dict[str, tuple[int, ...]]]:
    return [{agent: a.tokens for agent, a in node.actions.items()} for node in tree.nodes]


def test_a_deployed_team_gives_the_tokens_of_the_trainer(deployed: Deployed) -> None:
    config = load_source(str(deployed.run))
    parts = load_team(config)
    parts.load(RunFolder(deployed.run).checkpoints.choose().path)
    local = evaluate_team(
        parts.run.task,
        parts.players,
        config.evaluation,
        seed=config.run.seed,
        credit=parts.run.parts.credit,
        cast=parts.run.cast,
        processes=Processes(resolve_device("cpu")),
    )
    team = make_team(config, parts.run.task.agents, deployed.addresses)
    remote = asyncio.run(play(parts.run.task, team, config.evaluation, seed=config.run.seed))
    assert not remote.lost and len(remote.episodes) == 12
    for episode, tree in zip(remote.episodes, local.trees, strict=True):
        assert ids(episode.tree) == ids(tree)
    timing = {"response_seconds": 0.0}
    assert remote.metrics | timing == local.metrics | timing


def test_the_command_prints_what_evaluate_prints(
    deployed: Deployed,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run, greedy = str(deployed.run), ("--set", "evaluation.greedy=true")
    _, local, _ = command(capsys, monkeypatch, "evaluate", run, *greedy)
    file = tmp_path / "episodes.jsonl"
    code, remote, told = command(
        capsys, monkeypatch, "play", run, *deployed.options, *greedy, "--out", str(file)
    )
    assert code == 0 and told.endswith("played 12 of 12 episodes\n")
    assert (remote["episodes"], remote["lost"], remote["recovered"]) == (12, 0, 0)
    for name in set(local) - {"checkpoint", "response_seconds"}:
        assert remote[name] == local[name], name
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    trainer = json.loads((deployed.run / "episodes.jsonl").read_text().splitlines()[0])
    assert [line["episode"] for line in lines] == list(range(12))
    assert set(lines[0]) == {*trainer, "lost"}
