"""From training to servers, one process for each agent: the numbers and tokens of evaluation."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

import colearn.deploy.play.runner
from colearn.config import load_config
from colearn.contract.types import Tree
from colearn.deploy.export import export_run
from colearn.deploy.play import load_source, make_team, play
from colearn.deploy.play.episode import PlayedEpisode, PlaySetting
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
    """A run, and its agents' servers by name."""

    run: Path
    processes: dict[str, subprocess.Popen[str]]
    addresses: list[str]

    @property
    def options(self) -> list[str]:
        return [part for address in self.addresses for part in ("--agent", address)]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Path]]:
    folder = tmp_path_factory.mktemp("trained")
    Experiment(load_config("quickstart", TINY), folder / "run").run()
    return folder / "run", export_run(folder / "run", folder / "team")


@pytest.fixture
def deployed(trained: tuple[Path, dict[str, Path]]) -> Iterator[Deployed]:
    run, folders = trained
    processes = {
        name: subprocess.Popen(
            [
                sys.executable,
                "-m",
                "colearn",
                "serve",
                str(folder),
                "--port",
                "0",
                "--device",
                "cpu",
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        for name, folder in folders.items()
    }
    try:
        addresses = []
        for name, process in processes.items():
            assert process.stdout is not None
            addresses.append(f"{name}={process.stdout.readline().split()[-1]}")
        yield Deployed(run, processes, addresses)
    finally:
        for process in processes.values():
            process.kill()
            process.wait()


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


@pytest.mark.parametrize("greedy", [True, False])
def test_a_deployed_team_gives_the_tokens_of_the_trainer(deployed: Deployed, greedy: bool) -> None:
    config = load_source(str(deployed.run), [f"evaluation.greedy={greedy}"])
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


def test_a_server_killed_in_mid_episode_is_reported_and_the_play_ends(
    deployed: Deployed, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    original = colearn.deploy.play.runner.play_episode

    async def with_a_murder(table: PlaySetting, number: int, item: Any) -> PlayedEpisode:
        def tell(event: dict[str, Any]) -> None:
            if event["kind"] == "stepped" and event["episode"] == 3:
                deployed.processes["builder_2"].kill()

        return await original(replace(table, tell=tell), number, item)

    monkeypatch.setattr("colearn.deploy.play.runner.play_episode", with_a_murder)
    run, alone = str(deployed.run), ("--at-once", "1", "--retries", "1")
    code, report, told = command(capsys, monkeypatch, "play", run, *deployed.options, *alone)
    assert code == 1 and (report["episodes"], report["lost"]) == (12, 9)
    assert report["turns"] == 2.0 and "return" in report
    address = deployed.addresses[1].removeprefix("builder_2=")
    assert "played 3 of 12 episodes" in told and f"lost 9: agent 'builder_2' at {address}" in told
    assert "episodes 3 (turn 2), 4 (turn 1)" in told


def test_a_server_killed_and_started_again_loses_no_episode(
    deployed: Deployed, trained: tuple[Path, dict[str, Path]]
) -> None:
    """The new server knows no session; the conversation goes on from its text."""
    config = load_source(str(deployed.run))
    team = make_team(config, ("builder_1", "builder_2"), deployed.addresses, retries=8)
    port = deployed.addresses[1].split(":")[-1].removesuffix("/v1")

    def restart(event: dict[str, Any]) -> None:
        if event["kind"] == "stepped" and event["episode"] == 3:
            deployed.processes["builder_2"].kill()
            deployed.processes["builder_2"].wait()
            words = ["serve", str(trained[1]["builder_2"]), "--port", port, "--device", "cpu"]
            deployed.processes["builder_2"] = subprocess.Popen(
                [sys.executable, "-m", "colearn", *words], stdout=subprocess.DEVNULL
            )

    task = load_team(config).run.task
    result = asyncio.run(play(task, team, config.evaluation, seed=0, at_once=1, tell=restart))
    assert not result.lost and result.recovered == {"builder_2": 1}
    assert result.retries["builder_2"] >= 1
