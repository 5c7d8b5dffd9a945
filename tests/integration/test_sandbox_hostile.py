"""Hostile programs earn nothing, end in time and leave nothing behind."""

from __future__ import annotations

import dataclasses
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hostile_calls import ATTEMPTS, calls_by_number
from hostile_suite import (
    HONEST,
    LIMITS,
    PROGRAMS,
    descendants,
    left_over,
    run_attempts,
    run_honest,
    run_hostile,
    run_searches,
)
from wheel_install import install_wheel

import colearn.programs.sandbox.run
from colearn.programs.sandbox import Limits, run_program, run_tests
from colearn.programs.sandbox.confine import Side
from colearn.programs.sandbox.mechanism import works
from colearn.programs.sandbox.place import find_place
from colearn.programs.sandbox.process import Process

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(not works(), reason="no sandbox works here")


@pytest.fixture(scope="module")
def others() -> set[int]:
    """Processes that earlier tests of this worker left, such as wandb's; and what a first run
    makes."""
    run_honest("print(5)")
    return set(descendants())


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    (tmp_path / "secret").write_text("5")
    return tmp_path


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_earns_nothing_and_leaves_nothing(
    name: str, outside: Path, listener: socket.socket, others: set[int]
) -> None:
    filled = PROGRAMS[name].replace("OUTSIDE", str(outside))
    filled = filled.replace("PORT", str(listener.getsockname()[1]))
    descriptors = len(os.listdir("/proc/self/fd"))
    assert run_hostile(filled) == []
    assert left_over(others) == {}
    assert len(os.listdir("/proc/self/fd")) == descriptors
    assert sorted(path.name for path in outside.iterdir()) == ["secret"]
    with pytest.raises(BlockingIOError):
        listener.accept()


@pytest.mark.parametrize("attempts", [ATTEMPTS, calls_by_number()], ids=["by use", "by number"])
def test_what_the_sandbox_refuses_cannot_be_had(attempts: dict[str, str], others: set[int]) -> None:
    assert run_attempts(attempts) == []
    assert left_over(others) == {}


def test_a_search_finds_neither_the_tests_nor_packages_nor_what_another_run_left() -> None:
    assert run_searches() == ["[]\n", "[]\n"]


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_program_is_let_be(name: str) -> None:
    assert run_honest(HONEST[name]) == []


def test_sockets_of_several_processes_hold_what_the_page_says() -> None:
    """docs/howto/sandbox.md: 13 MB each with the kernel's share; 10.3 are the program's."""
    program = """
import os, socket
children = 0
while True:
    try:
        child = os.fork()
    except OSError:
        break
    if child == 0:
        break
    children += 1
held, total = [], 0
try:
    while True: held += socket.socketpair()
except OSError: pass
for one in held:
    one.setblocking(False)
    try:
        while True: total += one.send(b"x" * 4096)
    except OSError: pass
if child:
    for _ in range(children): os.wait()
print(total, flush=True)
if child == 0: os._exit(0)
"""
    limits = Limits(seconds=600.0, processes=4, memory_mb=512)
    text = run_program(program, limits=limits).text
    totals = [int(line) for line in text.split()]
    assert 1 < len(totals) <= 4
    assert max(totals) <= 11 << 20


@pytest.mark.slow
def test_it_is_the_same_where_the_wheel_is_installed(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """There the library and its problems lie among the packages, not in a repository."""
    python = install_wheel(tmp_path_factory.mktemp("wheel"))
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    suite = str(ROOT / "tests" / "helpers" / "hostile_suite.py")
    run = subprocess.run(
        [str(python), suite], capture_output=True, text=True, cwd="/", env=environment
    )
    assert (run.returncode, run.stderr) == (0, ""), run.stdout


def test_nothing_of_a_virtual_environment_is_shown() -> None:
    if sys.prefix == sys.base_prefix:
        pytest.skip("this is no virtual environment")
    assert [path for path in find_place().read_only if Path(sys.prefix) in Path(path).parents] == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_what_is_mounted_in_a_shown_folder_is_read_only() -> None:
    code = f"""
import ctypes, os, sys
from colearn.programs.sandbox import run_program
libc = ctypes.CDLL(None)
libc.unshare({0x20000})
libc.mount(b"none", b"/", None, {1 << 18 | 16384}, None)
folder = os.path.join(os.path.dirname(os.__file__), "idlelib")
if libc.mount(b"none", folder.encode(), b"tmpfs", 0, b"mode=0777"): sys.exit("no mount")
program = f"open('{{folder}}/written', 'w')"
print(run_program(program).message, os.listdir(folder))
"""
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert "Read-only file system" in run.stdout
    assert run.stdout.endswith(" []\n")


def test_a_source_too_large_to_send_starts_nothing(others: set[int]) -> None:
    before = os.listdir("/proc/self/fd")
    source = "\U0001f600" * (4 << 20)
    verdict = run_tests(source, "add", "assert add(1, 2) == 3")
    assert (verdict.error, verdict.passed) == ("syntax", (False,))
    assert run_program(source).error == "syntax"
    assert left_over(others) == {}
    assert os.listdir("/proc/self/fd") == before


def test_what_fails_between_two_starts_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, others: set[int]
) -> None:
    before = os.listdir("/proc/self/fd")
    start = colearn.programs.sandbox.run.start

    def fails(side: Side, *settings: Any) -> Process:
        if side == "program":
            raise OSError("no more processes")
        return start(side, *settings)

    monkeypatch.setattr(colearn.programs.sandbox.run, "start", fails)
    with pytest.raises(OSError, match="no more processes"):
        run_tests("", "add", "assert add(1, 2) == 3")
    assert left_over(others) == {}
    assert os.listdir("/proc/self/fd") == before


def test_a_run_ends_with_the_process_that_wanted_it() -> None:
    program = """
from colearn.programs.sandbox import Limits, run_tests
limits = Limits(seconds=3600, memory_mb=307)
program = "while True: pass"
run_tests(program, "f", "assert f()", limits=limits)
"""
    process = subprocess.Popen([sys.executable, "-c", program])
    assert _soon(lambda: bool(_running()))
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert _soon(lambda: not _running())


def _soon(holds: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 600
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.05)
    return holds()


def test_honest_and_hostile_side_by_side_keep_their_own_verdicts(
    outside: Path, others: set[int]
) -> None:
    names = [
        "os._exit in a call",
        "fork bomb that ignores errors",
        "writes forged reports to every descriptor",
        "endless output",
        "memory by growth",
        "signals to its parents",
    ]
    jobs = []
    for number, name in enumerate(names):
        tests = (f"assert add(1, 2) == {3 + number}", f"assert add(1, 2) == {4 + number}")
        job = {"entry_point": "add", "tests": tests}
        jobs.append(
            job
            | {
                "program": f"def add(a, b): return a + b + {number}",
                "limits": dataclasses.replace(LIMITS, seconds=600.0),
            }
        )
        hostile_limits = dataclasses.replace(LIMITS, seconds=2.0)
        jobs.append(job | {"program": PROGRAMS[name], "limits": hostile_limits})
    with ThreadPoolExecutor(4) as threads:
        verdicts = list(threads.map(lambda job: run_tests(**job), jobs))
    assert [v.passed for v in verdicts] == [(True, False), (False, False)] * 6
    assert left_over(others) == {}


def _running() -> list[str]:
    """Command lines of the processes of sandboxes with a memory that no other run has."""
    commands = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue  # it ended meanwhile
        if f"--memory={307 << 20}".encode() in words:
            commands.append(b" ".join(words).decode(errors="replace"))
    return commands
