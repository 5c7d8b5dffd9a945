"""A team pushed to a hub, whose HTTP API a server on the loopback answers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from exported import export_tiny
from fake_hub import FakeHub, fake_hub

from colearn.deploy.export import read_manifest

SCRIPT = """
import sys
from pathlib import Path
from colearn.errors import ColearnError
from colearn.deploy.export import push_agents

folders = {path.name: path for path in sorted(Path(sys.argv[1]).iterdir())}
try:
    pushed = push_agents(folders, sys.argv[2], "walls", private=len(sys.argv) > 3)
except ColearnError as error:
    raise SystemExit(f"error: {error}")
print(*pushed.agents.values(), pushed.collection)
"""


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    with fake_hub() as served:
        yield served


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two exported agents with weights of their own."""
    folder = tmp_path_factory.mktemp("team")
    for agent in ("ada", "ben"):
        export_tiny(folder / agent)
        manifest = read_manifest(folder / agent).model_copy(update={"agent": agent})
        manifest.write(folder / agent)
    return folder


def push(
    hub: FakeHub, team: Path, *words: str, namespace: str = "us", token: str | None = None
) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {
        "HF_ENDPOINT": hub.url,
        "HF_TOKEN": token or hub.token,
        "HF_HUB_OFFLINE": "0",
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    }
    command = [sys.executable, "-c", SCRIPT, str(team), namespace, *words]
    return subprocess.run(command, capture_output=True, text=True, env=environment)


def on_adapters(team: Path, to: Path, base: str) -> Path:
    """The team as adapters of rank 4 and 12 on a base."""
    for agent, rank in {"ada": 4, "ben": 12}.items():
        folder = to / agent
        folder.mkdir(parents=True)
        (folder / "adapter_config.json").write_text(json.dumps({"r": rank}))
        change = {"weights": "adapter", "base": base, "dtype": "bfloat16"}
        read_manifest(team / agent).model_copy(update=change).write(folder)
    return to


def test_each_agent_has_a_repository_with_exactly_its_folder(hub: FakeHub, team: Path) -> None:
    told = push(hub, team)
    assert told.returncode == 0, told.stderr
    assert set(hub.repositories) == {"us/walls-ada", "us/walls-ben"}
    for agent in ("ada", "ben"):
        sent = hub.repositories[f"us/walls-{agent}"]
        here = {path.name: path.read_bytes() for path in (team / agent).iterdir()}
        assert {k: v for k, v in sent.items() if k != ".gitattributes"} == here
    assert hub.collections == {"us/walls-0": ["us/walls-ada", "us/walls-ben"]}
    assert told.stdout.split()[-1].endswith("/collections/us/walls-0")
    assert not any(hub.private.values())


def test_a_second_push_replaces_the_files_and_adds_nothing(
    hub: FakeHub, team: Path, tmp_path: Path
) -> None:
    assert push(hub, team).returncode == 0
    told = push(hub, on_adapters(team, tmp_path / "adapters", "org/base"))
    assert told.returncode == 0, told.stderr
    kept = set(hub.repositories["us/walls-ada"]) - {".gitattributes"}
    assert kept == {"adapter_config.json", "agent.json"}
    assert hub.collections == {"us/walls-0": ["us/walls-ada", "us/walls-ben"]}


def test_private_repositories_are_asked_for(hub: FakeHub, team: Path) -> None:
    assert push(hub, team, "private").returncode == 0
    assert hub.private == dict.fromkeys(("us/walls-ada", "us/walls-ben"), True)


def test_an_adapter_on_a_local_base_is_refused_before_anything_is_uploaded(
    hub: FakeHub, team: Path, tmp_path: Path
) -> None:
    told = push(hub, on_adapters(team, tmp_path / "adapters", "/models/base"))
    assert told.returncode == 1
    assert "the adapter of 'ada' is on a local base, /models/base" in told.stderr
    assert hub.repositories == {}


@pytest.mark.parametrize(
    ("change", "reason"),
    [({"token": "hf_wrong"}, "Invalid username"), ({"namespace": "them"}, "no write access")],
)
def test_what_the_hub_refuses_is_one_line(
    hub: FakeHub, team: Path, change: dict[str, str], reason: str
) -> None:
    told = push(hub, team, **change)
    (line,) = [line for line in told.stderr.splitlines() if line.startswith("error: ")]
    assert line.startswith("error: --push ") and reason in line
    assert "Traceback" not in told.stderr
