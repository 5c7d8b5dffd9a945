"""What the task `verifiers` reads from the Python that plays: here a script in its place."""

from __future__ import annotations

import json
import os

import pytest

from colearn.errors import ConfigError
from colearn.tasks.verifiers import Verifiers


@pytest.fixture
def python(tmp_path):
    """Makes a program that writes a description, or an error."""

    def make(agents=(), keys=(), error=None):
        path = tmp_path / "python"
        text = f"\nloaded\n{json.dumps({'agents': list(agents), 'keys': list(keys)})}\n"
        said = f"cat <<'E'{text}E" if error is None else f"echo '{error}' >&2; exit 1"
        path.write_text(f"#!/bin/sh\n{said}\n")
        os.chmod(path, 0o700)
        return str(path)

    return make


def test_roles_are_agents_and_equal_tasks_stay_in_one_split(python):
    task = Verifiers("rooms", python=python(["scout", "guide"], "abcdefghabcdefgh"))
    assert task.agents == ("scout", "guide")
    train, test = task.items("train"), task.items("test")
    assert sorted((*train, *test)) == list(range(16))
    assert len(test) == 2  # the largest number of whole pairs in a fifth of 16 tasks
    assert test[0] % 8 == test[1] % 8


def test_one_task_is_trained_on_and_evaluated(python):
    task = Verifiers("rooms", python=python(["agent"], "a"))
    assert list(task.items("train")) == list(task.items("test")) == [0]


def test_settings_reach_the_program_that_plays(python):
    path = python(["agent"], "abcde")
    task = Verifiers("rooms", python=path, settings={"taskset": {"size": 3}}, rows=7)
    command, worker, spec = task.command
    assert (command, os.path.basename(worker)) == (path, "worker.py")
    assert json.loads(spec) == {
        "env": "rooms",
        "settings": {"taskset": {"size": 3}},
        "rows": 7,
        "rewards": "team",
    }


@pytest.mark.parametrize(
    ("told", "line"),
    [
        (
            {"error": "ModuleNotFoundError: No module named verifiers"},
            "task.env: 'rooms' cannot be loaded: ModuleNotFoundError: No module named verifiers",
        ),
        ({"keys": "ab"}, "task.env: every role of 'rooms' names a model, so none can be trained; "),
        ({"agents": ["agent"]}, "task.env: 'rooms' has no tasks; change task.settings.taskset"),
    ],
)
def test_an_environment_that_cannot_be_played_is_one_line(python, told, line):
    with pytest.raises(ConfigError) as caught:
        Verifiers("rooms", python=python(**told))
    assert str(caught.value).startswith(line)
    assert "\n" not in str(caught.value)


def test_a_python_without_verifiers_is_told_how_to_get_it(tmp_path):
    path = tmp_path / "python"
    path.write_text("#!/bin/sh\necho \"No module named 'verifiers'\" >&2\nexit 1\n")
    path.chmod(0o700)
    with pytest.raises(ConfigError) as caught:
        Verifiers("rooms", python=str(path))
    line = f"task.python: {path} has no verifiers 0.4; `{path} -m pip install 'verifiers>=0.4'`"
    assert str(caught.value).startswith(line)


def test_a_python_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"^task.python: cannot run '.*none' "):
        Verifiers("rooms", python=str(tmp_path / "none"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rows", 0),
        ("workers", 0),
        ("rewards", "each"),
        ("horizon", 0),
        ("timeout", -1.0),
        ("failure_reward", float("nan")),
        ("max_bytes", 0),
    ],
)
def test_a_value_that_a_setting_cannot_have_is_refused_before_anything_runs(python, name, value):
    with pytest.raises(ConfigError, match=f"^task.{name}: "):
        Verifiers("rooms", python=python(error="never run"), **{name: value})
