"""Reading of folders in Harbor's task format."""

from __future__ import annotations

from pathlib import Path

import pytest

from colearn.errors import TaskError
from colearn.tasks.harbor.folder import HarborTask, read_tasks
from tests.helpers.harbor_tasks import write_task


def read(folder: Path, **files: str) -> HarborTask:
    write_task(folder / "one", **files)
    [task] = read_tasks(folder)
    return task


def refused(folder: Path, **files: str) -> str:
    with pytest.raises(TaskError) as raised:
        read(folder, **files)
    return str(raised.value)


def test_the_folders_with_a_task_toml_are_the_tasks_by_name(tmp_path):
    for name in ("b", "a"):
        write_task(tmp_path / name)
    (tmp_path / "notes").mkdir()
    assert [task.name for task in read_tasks(tmp_path)] == ["a", "b"]
    assert [task.name for task in read_tasks(tmp_path / "b")] == ["b"]


def test_working_folder_variables_and_time_limit_are_those_of_the_task(tmp_path):
    task = read(
        tmp_path,
        dockerfile='FROM python:3.12-slim\nENV A=1 B="two words"\nWORKDIR /srv\nWORKDIR box\n',
        toml="[verifier]\ntimeout_sec = 7\nenv = {C = '3'}\n[environment]\nenv = {B = 'x'}\n",
    )
    assert (task.folder, task.verifier_seconds) == ("/srv/box", 7.0)
    assert task.variables == {"A": "1", "B": "x"}
    assert task.verifier_variables == {"A": "1", "B": "x", "C": "3"}


def test_without_a_time_limit_the_verifier_has_harbors_600_seconds(tmp_path):
    assert read(tmp_path).verifier_seconds == 600.0


@pytest.mark.parametrize(("asked", "memory"), [(64, 2048), (4096, 4096)])
def test_a_task_may_ask_for_more_memory(tmp_path, asked, memory):
    assert read(tmp_path, toml=f"[environment]\nmemory_mb = {asked}\n").memory_mb == memory


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"dockerfile": "FROM ubuntu:24.04\nRUN make\n"}, "a container (its Dockerfile says 'RUN"),
        ({"dockerfile": "FROM ghcr.io/mine/image:1\n"}, "a container (its Dockerfile says 'FROM"),
        ({"dockerfile": "FROM ubuntu\nCOPY --chown=1 a b\n"}, "says 'COPY --chown"),
        ({"toml": "[environment]\ndocker_image = 'x'\n"}, "(environment.docker_image)"),
        ({"toml": "[environment]\ngpus = 1\n"}, "(environment.gpus)"),
        ({"toml": "[environment]\nenv = {KEY = '${KEY}'}\n"}, "the variable KEY of this machine"),
        ({"toml": "[verifier]\nenvironment_mode = 'separate'\n"}, "(verifier.environment_mode)"),
        ({"toml": "[verifier.environment]\nos = 'linux'\n"}, "(verifier.environment)"),
        ({"toml": "[environment]\nos = 'windows'\n"}, "(environment.os)"),
        ({"toml": "[[steps]]\nname = 'one'\n"}, "has several steps"),
        (
            {"test": "#!/bin/bash\ntrue && uvx pytest /tests\n"},
            "(line 2 of tests/test.sh runs uvx)",
        ),
    ],
)
def test_a_task_that_needs_more_than_the_sandbox_is_refused_by_name(tmp_path, files, reason):
    line = refused(tmp_path, **files)
    assert line.startswith("task.path: one ")
    assert reason in line
    assert line.endswith("which has containers, or leave it out")


def test_a_task_with_more_files_than_the_sandbox_holds_is_refused(tmp_path):
    write_task(tmp_path / "one")
    with (tmp_path / "one" / "environment" / "data").open("wb") as file:
        file.truncate(16 << 20)
    with pytest.raises(TaskError, match=r"^task\.path: one has 16 MB of files or more; play"):
        read_tasks(tmp_path)


def test_a_folder_without_a_verifier_is_one_line(tmp_path):
    write_task(tmp_path / "one")
    (tmp_path / "one" / "tests" / "test.sh").unlink()
    with pytest.raises(TaskError, match=r"^task\.path: one is no Harbor task \(.*give it"):
        read_tasks(tmp_path)


def test_a_copy_from_outside_of_the_environment_is_one_line(tmp_path):
    (tmp_path / "secret").write_text("x")
    line = refused(tmp_path, dockerfile="FROM ubuntu\nCOPY ../../secret /app/\n")
    assert "its Dockerfile copies ../../secret from outside of environment/" in line


def test_a_folder_without_tasks_is_one_line(tmp_path):
    with pytest.raises(TaskError, match=r"has no folder with a task\.toml; name a folder of Har"):
        read_tasks(tmp_path)
