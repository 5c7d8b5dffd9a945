"""What is played with whom: sources, addresses, keys and sampling; mistakes are one line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from scripted_endpoint import ScriptedEndpoint, status
from tiny import register

from colearn.config import dump_config, load_config
from colearn.deploy.play import load_source, make_team
from colearn.deploy.play.source import agent_settings
from colearn.entry.cli import main
from colearn.errors import ConfigError

URLS = ("builder_1=http://127.0.0.1:1", "builder_2=http://127.0.0.1:2/v1")
AGENTS = ("builder_1", "builder_2")


def test_a_task_is_found_by_run_by_config_and_by_name(tmp_path: Path) -> None:
    config = load_config("quickstart", ["run.seed=4", "critic.baseline=item"])
    (tmp_path / "config.yaml").write_text(dump_config(config))
    for source in (tmp_path, tmp_path / "config.yaml"):
        loaded = load_source(str(source))
        # a config that is read from a run's folder also records where it was
        here = {"folders": config.run.folders}
        assert loaded.model_copy(update={"run": loaded.run.model_copy(update=here)}) == config
    assert load_source("quickstart").task.settings["prompt"] == "compact"
    assert load_source("str_build", ["task.horizon=3"]).task.settings == {"horizon": 3}


def test_what_is_nothing_of_these_is_an_error_with_the_nearest_name() -> None:
    with pytest.raises(
        ConfigError, match=r"'strbuild' is not a run's folder.*did you mean 'str_build'"
    ):
        load_source("strbuild")


def test_a_runs_agents_are_sampled_as_in_the_run(tmp_path: Path) -> None:
    config = load_config("quickstart", ["agents.*.sampling.stop=[END]"])
    (tmp_path / "config.yaml").write_text(dump_config(config))
    fields = agent_settings(load_source(str(tmp_path)), "builder_1").request_fields
    assert fields == {"temperature": 0.7, "top_p": 1.0, "max_tokens": 16, "stop": ["END"]}


def test_what_nobody_sets_is_left_to_the_server() -> None:
    assert agent_settings(load_source("str_build"), "builder_1").request_fields == {}
    assert agent_settings(load_source("quickstart"), "x").request_fields == {
        "max_tokens": 16,
        "temperature": 0.7,
    }


@pytest.mark.parametrize(
    ("addresses", "options", "line"),
    [
        (URLS[:1], {}, "--agent: none plays 'builder_2'; add --agent builder_2=URL"),
        ((*URLS, URLS[0]), {}, "--agent: agent 'builder_1' is given twice; leave one out"),
        (("builder1=http://h",), {}, "no agent 'builder1'; did you mean 'builder_1'?"),
        (("http://h",), {}, "--agent: write NAME=URL, where NAME is one of the task's agents"),
        (("builder_1=h", URLS[1]), {}, "agent 'builder_1': the URL must look like"),
        (URLS, {"tokens": ["builder_1=NO_SUCH"]}, "--token-env builder_1=NO_SUCH: the environment"),
        (URLS, {"models": ["builder_1"]}, "--model: write NAME=MODEL"),
        (URLS, {"timeout": 0.0}, "agent 'builder_1': timeout is 0.0, must be above 0 seconds"),
    ],
)
def test_a_mistake_in_the_team_is_one_line(
    addresses: tuple[str, ...], options: dict[str, object], line: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        make_team(load_source("str_build"), AGENTS, addresses, **options)  # type: ignore[arg-type]
    assert line in str(raised.value) and "\n" not in str(raised.value)


def test_an_error_about_a_key_does_not_show_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "s3cret\n")
    with pytest.raises(ConfigError) as raised:
        make_team(load_source("str_build"), AGENTS, URLS, tokens=["builder_1=MY_KEY"])
    assert "s3cret" not in str(raised.value)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["nothing_here"], "task: 'nothing_here' is not a run's folder, a config or a task"),
        (["notes", "--set", "evaluation.split"], "--set evaluation.split: write dotted.key=value"),
        (["notes", "--out", "/nowhere/x"], "--out /nowhere/x: name a new file in a folder"),
        (["notes"], "agent 'ada' at http://127.0.0.1:9/v1: "),
    ],
)
def test_the_command_ends_a_mistake_with_one_line_and_code_2(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    line: str,
) -> None:
    register(monkeypatch, notes="tiny:Notes")
    team = [f"--agent={name}=http://127.0.0.1:9" for name in ("ada", "ben")]
    monkeypatch.setattr(sys, "argv", ["colearn", "play", *arguments, *team, "--retries=0"])
    with pytest.raises(SystemExit) as stop:
        main()
    told = capsys.readouterr().err
    assert stop.value.code == 2 and line in told and told.count("\n") == 1


def test_the_command_ends_a_play_that_lost_an_episode_with_code_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    register(monkeypatch, notes="tiny:Notes")
    file = tmp_path / "episodes.jsonl"
    with (
        ScriptedEndpoint(name="ada").serving() as ada,
        ScriptedEndpoint(name="ben", faults=[status(400, "too long")]).serving() as ben,
    ):
        team = [f"--agent=ada={ada.url}", f"--agent=ben={ben.url}", "--at-once=1"]
        monkeypatch.setattr(sys, "argv", ["colearn", "play", "notes", *team, "--out", str(file)])
        with pytest.raises(SystemExit) as stop:
            main()
    told = capsys.readouterr()
    report = json.loads(told.out)
    assert stop.value.code == 1 and (report["episodes"], report["lost"]) == (4, 1)
    assert "played 3 of 4 episodes\nlost 1: agent 'ben' at " in told.err
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["lost"] is None for line in lines] == [False, True, True, True]
