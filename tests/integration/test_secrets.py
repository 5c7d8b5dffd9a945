"""Secrets of a config: no file of a run, a comparison, a report or an export holds one."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
import yaml

from colearn.config import load_config
from colearn.deploy.export import read_manifest
from colearn.entry.cli import main
from colearn.errors import ConfigError
from colearn.runs.record import open_run
from colearn.text.masking import MASK, SECRETS
from colearn.training.loop import Experiment
from tests.helpers.scripted_endpoint import ScriptedEndpoint

SECRET = "SWORDFISH"
TRACKER = """
import json

from colearn.contract import Tracker


class Noted(Tracker):
    def __init__(self, folder, settings, api_key: str, options: list[str]):
        assert (api_key, options[1]) == ("SWORDFISH1", "SWORDFISH2"), "the tracker gets the keys"
        (folder / "tracked.json").write_text(json.dumps(settings))

    def log(self, metrics, step):
        pass

    def transcripts(self, episodes, step):
        pass

    def close(self):
        pass
"""


def colearn(*arguments: str, cwd: Path, code: int = 0, **environment: str) -> str:
    """What the command prints, in this process."""
    told, ended = io.StringIO(), 0
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(told), redirect_stderr(told):
        patch.chdir(cwd)
        patch.setattr(sys, "argv", ["colearn", *arguments])
        for name, value in environment.items():
            patch.setenv(name, value)
        try:
            main()
        except SystemExit as stop:
            ended = int(stop.code or 0)
    assert ended == code, told.getvalue()
    return told.getvalue()


def holding(folder: Path) -> list[str]:
    """The files below a folder that hold the secret."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return [str(path) for path in files if SECRET.encode() in path.read_bytes()]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a config that holds secrets, and its judge."""
    folder = tmp_path_factory.mktemp("secrets")
    rows = [json.dumps({"prompt": f"paint {k}"}) for k in range(10)]
    (folder / "train.jsonl").write_text("\n".join(rows))
    (folder / "noted.py").write_text(TRACKER)
    before = os.environ.get("COLEARN_CACHE")
    os.environ["COLEARN_CACHE"] = str(folder / "cache")
    with ScriptedEndpoint(speak=lambda messages, seed: "Score: 7").serving() as server:
        at = server.url.removeprefix("http://")
        config = {
            "task": {
                "name": "dataset",
                "path": str(folder / "train.jsonl"),
                "reward": [{"name": "judge", "url": f"http://ada:{SECRET}@{at}"}],
                "words": ["red", "blue"],
            },
            "algorithm": {"name": "grpo", "rollout": {"k": 2}},
            "models": {"*": {"path": "embedded-tiny-untrained"}},
            "agents": {"*": {"sampling": {"max_tokens": 3}}},
            "players": {"rival": {"endpoint": f"http://eva:{SECRET}@{at}"}},
            "train": {"environment_steps": 4, "episodes": 1},
            "run": {
                "trackers": [
                    {
                        "name": "noted:Noted",
                        "api_key": f"{SECRET}1",
                        "options": ["--token", f"{SECRET}2"],
                    }
                ]
            },
            "compare": {"seeds": [0], "algorithms": {"grpo": {}}},
        }
        (folder / "own.yaml").write_text(yaml.safe_dump(config))
        yield folder, server, config
    if before is None:
        del os.environ["COLEARN_CACHE"]
    else:
        os.environ["COLEARN_CACHE"] = before


@pytest.fixture(scope="module")
def compared(place):
    """A comparison's folder with its report, and what was printed."""
    folder, server, _ = place
    url = f"http://eve:{SECRET}@{server.url.removeprefix('http://')}"
    sets = ["--set", f"task.reward={{name: judge, url: '{url}'}}"]
    told = colearn("compare", "own.yaml", *sets, "--out", "out", cwd=folder)
    told += colearn("report", "out", cwd=folder)
    return folder / "out", told


@pytest.mark.slow
def test_no_file_of_a_comparison_holds_a_secret_and_nothing_prints_one(compared):
    out, told = compared
    assert (out / "report.html").is_file() and (out / "summary.json").is_file()
    assert holding(out) == [] and SECRET not in told
    assert MASK in json.loads((out / "compare.json").read_text())["command"]


@pytest.mark.slow
def test_the_judge_of_a_comparison_is_asked_with_the_password(compared, place):
    _, server, _ = place
    assert server.requests
    asked = {headers.get("authorization", "") for headers in server.headers}
    assert asked == {"Basic ZXZlOlNXT1JERklTSA=="}  # base64 of eve:SWORDFISH


@pytest.mark.slow
def test_an_export_holds_no_secret(compared):
    out, _ = compared
    told = colearn("export", "runs/grpo-s0", "--to", "agents", cwd=out)
    assert holding(out / "agents") == [] and SECRET not in told
    settings = read_manifest(out / "agents" / "agent").task_settings
    assert settings["reward"]["url"].startswith(f"http://{MASK}@127.0.0.1:")


def test_an_older_export_shows_no_secret_either(tmp_path):
    manifest = {"agent": "a", "task": "t", "algorithm": "grpo", "weights": "merged"}
    settings = {"reward": {"url": f"http://ada:{SECRET}@host"}}
    (tmp_path / "agent.json").write_text(json.dumps({**manifest, "task_settings": settings}))
    shown = read_manifest(tmp_path).model_dump(mode="json")  # what /v1/agent answers
    assert shown["task_settings"] == {"reward": {"url": f"http://{MASK}@host"}}


def test_a_run_is_resumed_with_its_config_or_with_its_secrets_and_else_refused(place, tmp_path):
    folder, _, config = place
    run = tmp_path / "run"
    told = colearn("train", "own.yaml", "--out", str(run), cwd=folder)
    more = ["train", "--out", str(run), "--resume", "--set"]
    refused = colearn(*more, "train.environment_steps=8", cwd=folder, code=2)
    assert re.search(r"error: task\.reward\.0\.url: is masked .* or in COLEARN_SECRETS", refused)
    secrets = {
        "task.reward.0.url": config["task"]["reward"][0]["url"],
        "players.rival.endpoint": config["players"]["rival"]["endpoint"],
        "run.trackers.0.api_key": f"{SECRET}1",
        "run.trackers.0.options.1": f"{SECRET}2",
    }
    environment = {SECRETS: json.dumps(secrets)}
    told += colearn(*more, "train.environment_steps=8", cwd=folder, **environment)
    assert open_run(run).environment_steps() == 8
    again = ["own.yaml", *more[1:], "train.environment_steps=12"]
    told += colearn("train", *again, cwd=folder)
    assert open_run(run).environment_steps() == 12
    assert holding(run) == [] and SECRET not in told


def test_an_experiment_refuses_a_masked_setting(place, tmp_path):
    _, _, config = place
    hidden = load_config({**config, "players": {"rival": {"endpoint": f"https://{MASK}@a/v1"}}})
    with pytest.raises(ConfigError, match=r"players\.rival\.endpoint: is masked"):
        Experiment(hidden, tmp_path / "run").run()


def test_an_error_on_the_terminal_holds_no_password(place):
    wrong = f"task.reward=ftp://ada:{SECRET}@host"
    told = colearn("train", "own.yaml", "--set", wrong, "--out", "x", cwd=place[0], code=2)
    assert told.count("error: ") == 1 and SECRET not in told
