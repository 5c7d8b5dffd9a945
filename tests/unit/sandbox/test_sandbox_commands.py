"""Programs that start the machine's commands."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest

from colearn.errors import ConfigError
from colearn.programs.sandbox import Limits, run_program
from colearn.programs.sandbox.process import Process

LIMITS = Limits(memory_mb=1024, processes=8)


def said(command: str, limits: Limits = LIMITS) -> str:
    """What a shell command wrote, its errors included."""
    program = (
        "import subprocess\n"
        f"done = subprocess.run(['bash', '-c', {command!r}], stdout=-1, stderr=-2, text=True)\n"
        "print(done.stdout, end='')\n"
    )
    return run_program(program, limits=limits, commands=True).text


def test_commands_work_with_folders_of_the_root():
    assert said("mkdir -p /app/x && cd /app/x && echo b a | tr ' ' '\\n' | sort") == "a\nb\n"


def test_commands_see_a_root_of_the_system_alone():
    assert said("ls /home /opt /tmp /work /proc 2> /dev/null | grep -v '^/' | tr -d '\\n'") == ""


def test_commands_cannot_write_where_the_system_is():
    assert "Read-only file system" in said("echo x > /usr/bin/x")
    assert "Permission denied" in said("echo x > /etc/ld.so.preload")


def test_commands_have_no_network_and_no_privileges():
    assert "Operation not permitted" in said("echo > /dev/tcp/127.0.0.1/80")
    assert said("test $(id -u) -ne 0 && chown 0 /tmp 2> /dev/null || echo no") == "no\n"


def test_the_root_is_as_small_as_the_limit_of_files():
    small = Limits(memory_mb=1024, processes=8, file_mb=1)
    assert "No space left on device" in said("head -c 900000 /dev/zero > /a; cp /a /b", small)


def test_a_sandbox_that_is_still_starting_has_not_too_many_files():
    """Until bubblewrap has changed its root, the process is in the root of this machine."""
    words = ["bash", "-c", "sleep 600 & echo; wait"]
    child = subprocess.Popen(words, stdin=-1, stdout=-1, start_new_session=True)
    try:
        assert child.stdout.read(1) == b"\n"
        assert not Process(child, None, files=1, inside="/").too_many_files()
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def test_without_commands_there_is_no_shell():
    program = "import os\nprint(os.path.exists('/usr/bin/env'))"
    assert run_program(program).text == "False\n"


def test_commands_without_bubblewrap_are_refused():
    with pytest.warns(UserWarning), pytest.raises(ConfigError, match="run under 'bwrap' only"):
        run_program("", commands=True, mechanism="unsafe")
