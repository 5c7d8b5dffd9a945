"""A server that a run starts: what it is told, what its log says, and that it ends with the run."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from colearn.engines import server_process
from colearn.engines.server_process import ServerProcess, free_port

LAUNCHER = {
    "RANK": "1",
    "LOCAL_RANK": "1",
    "WORLD_SIZE": "2",
    "LOCAL_WORLD_SIZE": "2",
    "MASTER_ADDR": "a",
    "TORCHELASTIC_USE_AGENT_STORE": "True",
}
CHILD = """
import pathlib, subprocess, sys, time
child = subprocess.Popen(["sleep", "600"])
pathlib.Path({file!r}).write_text(f"{{child.pid}}\\n")
time.sleep(600)
"""
SLOW_END = """
import pathlib, signal, sys, time
def end(*_):
    time.sleep(0.5)
    pathlib.Path({file!r}).write_text("ended")
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
pathlib.Path({file!r}).write_text("began\\n")
time.sleep(600)
"""
STUBBORN = """
import pathlib, os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
pathlib.Path({file!r}).write_text(f"{{os.getpid()}}\\n")
time.sleep(600)
"""

Start = Callable[..., ServerProcess]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a Python program as a server."""
    started: list[ServerProcess] = []

    def begin(program: str, **environment: str) -> ServerProcess:
        command = [sys.executable, "-c", program]
        log = tmp_path / "server.log"
        started.append(ServerProcess(command, environment=environment, log=log))
        return started[-1]

    yield begin
    for server in started:
        server.close()


def line_in(file: Path) -> str:
    """The first line of a file that a process writes."""
    return soon(lambda: file.is_file() and file.read_text().endswith("\n") and file.read_text())


def soon(holds: Callable[[], object]) -> str:
    """Waits for at most ten minutes."""
    end = time.monotonic() + 600
    while time.monotonic() < end:
        if found := holds():
            return str(found).strip()
        time.sleep(0.05)
    raise AssertionError("it did not come about within ten minutes")


def lives(number: str) -> bool:
    try:
        state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_a_server_has_its_own_variables_but_not_a_launchers_and_logs_both_streams(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {**LAUNCHER, "MASTER_PORT": "1", "MINE": "kept", "CUDA_VISIBLE_DEVICES": "0"}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    program = f"""
import os, sys
print([n for n in {sorted(given)} if n in os.environ], flush=True)
print(os.environ['CUDA_VISIBLE_DEVICES'], file=sys.stderr)
"""
    server = start(program, CUDA_VISIBLE_DEVICES="3")
    soon(lambda: not server.running)
    assert server.log.read_text().splitlines() == ["['CUDA_VISIBLE_DEVICES', 'MINE']", "3"]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            "INFO: up\nOSError: no  room\nValueError: no key\nINFO: ended\nrank 0 has errors\n",
            "(ValueError: no key)",
        ),
        ("up\nKilled  by the os\n\n", "(Killed by the os)"),
        ("\n", "(no output)"),
        (f"Error: {'a' * 300}b\n", f"({'a' * 299}b)"),
    ],
    ids=["a cause", "no cause", "silence", "a long line"],
)
def test_a_failure_is_told_by_the_last_line_that_names_a_cause_or_the_last_one(
    tmp_path: Path, said: str, told: str
) -> None:
    server = ServerProcess.__new__(ServerProcess)
    server.log = tmp_path / "log"
    server.log.write_text(said)
    line = str(server.failed())
    assert (
        line.startswith("run.generator: the vLLM server ended while it started (") and told in line
    )


def test_the_processes_of_a_server_end_with_it(start: Start, tmp_path: Path) -> None:
    server = start(CHILD.format(file=str(tmp_path / "child")))
    child = line_in(tmp_path / "child")
    server.close()
    soon(lambda: not lives(child))
    assert not server.running


def test_a_server_may_end_what_it_does(start: Start, tmp_path: Path) -> None:
    file = tmp_path / "said"
    server = start(SLOW_END.format(file=str(file)))
    line_in(file)
    server.close()
    assert file.read_text() == "ended"


def test_a_server_that_does_not_end_is_killed(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_process, "_GRACE", 0.2)
    server = start(STUBBORN.format(file=str(tmp_path / "number")))
    number = line_in(tmp_path / "number")
    server.close()
    soon(lambda: not lives(number))


def test_a_server_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    child = CHILD.format(file=str(tmp_path / "child"))
    run = f"""
import os, pathlib, sys, time
from colearn.engines.server_process import ServerProcess
log = pathlib.Path({str(tmp_path / "log")!r})
ServerProcess([sys.executable, "-c", {child!r}], environment={{}}, log=log)
while not pathlib.Path({str(tmp_path / "child")!r}).is_file():
    time.sleep(0.05)
os._exit(9)
"""
    assert subprocess.run([sys.executable, "-c", run]).returncode == 9
    child_number = line_in(tmp_path / "child")
    soon(lambda: not lives(child_number))


def test_a_server_that_outlives_its_run_and_does_not_end_is_killed(tmp_path: Path) -> None:
    stubborn = STUBBORN.format(file=str(tmp_path / "number"))
    keep = f"""
from colearn.engines import server_process
server_process._GRACE = 0.2
server_process._keep({os.getppid()}, {[sys.executable, "-c", stubborn]!r})
"""
    keeper = subprocess.Popen([sys.executable, "-c", keep], start_new_session=True)
    assert keeper.wait(600) == -signal.SIGKILL
    number = tmp_path / "number"
    assert not number.is_file() or not lives(number.read_text().strip())


def test_a_free_port_can_be_taken() -> None:
    with socket.socket() as one:
        one.bind(("127.0.0.1", free_port()))
        assert free_port() != one.getsockname()[1]
