"""Programs that fail or ask nobody in training: their episodes are lost and counted."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tiny import save_model

from colearn.config import load_config
from colearn.errors import ConfigError, TaskError
from colearn.models.embedded import embedded_model, embedded_parts
from colearn.programs.gateway.task import Gateway
from colearn.runs.record import open_run
from colearn.training.loop import Experiment
from tests.helpers import lossy_gateway_programs
from tests.helpers.gateway_programs import RNG, opened

CHAIN = {"name": "mareinforce", "rollout": {"name": "chain"}}
PARALLEL = {"name": "magrpo", "rollout": {"name": "parallel", "k": 2}}
PROGRAMS = "tests.helpers.lossy_gateway_programs"


def config(path, play, algorithm):
    task = {"agents": ["one", "two"], "items": f"{PROGRAMS}:items", "play": f"{PROGRAMS}:{play}"}
    return load_config(
        {
            "task": {"name": "gateway", **task, "words": {"one": ["yes"], "two": ["no"]}},
            "algorithm": algorithm,
            "models": {"*": {"path": str(path)}},
            "agents": {"*": {"sampling": {"max_tokens": 3}}},
            "train": {"episodes": 4, "environment_steps": 1000, "iterations": 1},
            "evaluation": {"episodes": 4, "every": 10},
            "run": {"device": "cpu"},
        }
    )


def gateway(play, **settings):
    return opened(
        Gateway(
            ("one", "two"),
            f"{PROGRAMS}:items",
            play=f"{PROGRAMS}:{play}",
            timeout=600.0,
            words={"one": ("yes",), "two": ("no",)},
            **settings,
        )
    )


def place(pattern):
    """The file of the programs, and the number of its first line with a pattern."""
    file = Path(lossy_gateway_programs.__file__)
    lines = file.read_text().splitlines()
    return f"{file}, line {next(n for n, line in enumerate(lines, 1) if re.search(pattern, line))}"


def updates(folder):
    return [line for line in open_run(folder).lines() if line.kind == "update"]


def test_lost_episodes_are_in_the_metrics_of_their_update(tmp_path):
    """Of four items one fails before it asks, one after, one asks nobody, and one is played."""
    settings = config(save_model(tmp_path / "model"), "some_are_lost", CHAIN)
    record = Experiment(settings, tmp_path / "run").run()
    assert (record.status, record.iterations) == ("finished", 1)
    (line,) = updates(tmp_path / "run")
    assert (line.metrics["failed"], line.metrics["unasked"]) == (0.5, 0.5)


def test_a_run_whose_programs_ask_nobody_goes_on_and_says_so(tmp_path):
    settings = config(save_model(tmp_path / "model"), "quiet", PARALLEL)
    record = Experiment(settings, tmp_path / "run").run()
    assert (record.status, record.iterations, record.generations) == ("finished", 1, 0)
    (line,) = updates(tmp_path / "run")
    assert (line.metrics["unasked"], line.metrics["failed"]) == (1.0, 0.0)


def test_a_warm_start_leaves_out_the_programs_that_ask_nobody(tmp_path, monkeypatch):
    monkeypatch.setenv("COLEARN_CACHE", str(tmp_path))
    _, tokenizer = embedded_parts(gateway("some_are_lost"), "embedded-tiny", "models.*.path")
    assert "yes" in tokenizer.get_vocab()


@pytest.mark.parametrize("make", [embedded_model, embedded_parts])
def test_a_warm_start_on_programs_that_ask_nobody_is_one_line(tmp_path, monkeypatch, make):
    monkeypatch.setenv("COLEARN_CACHE", str(tmp_path))
    with pytest.raises(
        ConfigError, match=r"^models\.\*\.path: .* no agent acts in any of \d+; correct"
    ) as error:
        make(gateway("quiet"), "embedded-tiny", "models.*.path")
    assert "\n" not in str(error.value)


def test_a_result_that_cannot_be_graded_is_the_programs_failure():
    task = gateway("quiet", grade=f"{PROGRAMS}:grade", failure_reward=-1.0)
    state = task.reset({"result": "9" * 400}, RNG)
    at = place(r"return float\(")
    assert state.failure == (
        f"cannot be graded: OverflowError: int too large to convert to float ({at})"
    )
    assert sum(paid.value for paid in state.payments) == -1.0
    assert task.reset({"result": "3"}, RNG).failure is None


def test_a_grade_that_is_no_reward_is_the_graders_mistake():
    with pytest.raises(TaskError, match=r"^task\.grade: the result must be finite"):
        gateway("quiet", grade=f"{PROGRAMS}:grade").reset({"result": "inf"}, RNG)


def test_what_a_program_says_reaches_the_terminal_escaped(capsys, tmp_path):
    task = gateway("shouts")
    state = task.reset("any", RNG)
    failure = f"RuntimeError: ?[2Jone two? ({place('2Jone')})"
    assert state.failure == failure
    assert capsys.readouterr().err == f"warning: gateway: a program failed: {failure}\n"
    assert task.render(state).endswith(f"the program failed: {failure}")
    assert json.dumps(task.render(state)).isprintable()


def test_what_a_command_says_reaches_the_terminal_escaped(capsys):
    script = r"printf 'one\033[2Jtwo\233\n' >&2; exit 3"
    task = opened(
        Gateway(("one",), f"{PROGRAMS}:items", command=("sh", "-c", script), timeout=600.0)
    )
    assert task.reset("any", RNG).failure == "exit code 3: one?[2Jtwo\ufffd"
    assert "\x1b" not in capsys.readouterr().err
