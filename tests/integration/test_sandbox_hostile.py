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
from hostile_suite import (
    HONEST,
    LIMITS,
    PROGRAMS,
    descendants,
    left_over,
    run_honest,
    run_hostile,
    run_search,
)
from wheel_install import install_wheel

import colearn.programs.sandbox.run
from colearn.programs.sandbox import Limits, run_program, run_tests
from colearn.programs.sandbox.confine import Side
from colearn.programs.sandbox.mechanism import works
from colearn.programs.sandbox.place import find_place
from colearn.programs.sandbox.process import Process

ROOT = Path(__file__).parents[2]
FOUND = (
    *("exit status 168", "signal 50", "half a frame", "megabytes of empty lists"),
    *(
        "pipes that do not block",
        "vmsplice",
        "extended attributes",
        "large socket buffers",
        "system call io_setup",
    ),
    *("a hundred thousand files", "links with long targets", "descriptors in flight"),
    *("a socket of the machine's", "the times of the null device", "a lock on the library"),
    *("a shared lock on the library", "a watch on the library", "large pipes"),
    *("descriptors of a thread's own", "sockets of three threads", "a read that does not wait"),
    *(
        "a thread without shared descriptors",
        "the library out of the cache",
        "a page out by advice",
    ),
    *("what is cached, by a map", "system call cachestat", "a hint on a file"),
    *("a waiter at the library", "a waiter that is moved", "system call futex_waitv"),
    *("the load of the machine", "descriptors of a thread's own, later"),
    *("a counter of the machine, by a socket", "the fill of the machine's disk"),
    "limits by the number of a process",
)
"""Holes that there were once; of the others every third program is in the default run."""
CASES = [
    pytest.param(
        program,
        id=name,
        marks=[]
        if name in FOUND or (kind == "programs" and number % 3 == 0)
        else [pytest.mark.slow],
    )
    for kind, programs in PROGRAMS.items()
    if kind != "searches"
    for number, (name, program) in enumerate(programs.items())
]


pytestmark = pytest.mark.skipif(not works(), reason="no sandbox works here")


@pytest.fixture(scope="module")
def others() -> set[int]:
    """Processes that earlier tests of this worker left, such as wandb's."""
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


@pytest.mark.parametrize("program", CASES)
def test_it_earns_nothing_and_leaves_nothing(
    program: str, outside: Path, listener: socket.socket, others: set[int]
) -> None:
    filled = program.replace("OUTSIDE", str(outside))
    filled = filled.replace("PORT", str(listener.getsockname()[1]))
    run_honest("print(5)")  # what is made once is made
    descriptors = len(os.listdir("/proc/self/fd"))
    assert run_hostile(filled) == []
    assert left_over(others) == {}
    assert len(os.listdir("/proc/self/fd")) == descriptors
    assert sorted(path.name for path in outside.iterdir()) == ["secret"]
    with pytest.raises(BlockingIOError):
        listener.accept()


@pytest.mark.parametrize("name", PROGRAMS["searches"])
def test_it_finds_nothing(name: str) -> None:
    assert run_search(PROGRAMS["searches"][name]) == []


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


def test_there_are_more_than_two_hundred_hostile_programs() -> None:
    assert len({program for programs in PROGRAMS.values() for program in programs.values()}) > 200


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


@pytest.mark.parametrize("answer", (r"b'\0\0'", r"b'\0\0\0\7l'"), ids=["length", "value"])
def test_half_an_answer_costs_one_call_its_time(answer: str) -> None:
    program = f"""
import os, sys, time
answers = int(next(w for w in sys.orig_argv if w[:1].isdigit() and "," in w).split(",")[1])
def add(a, b):
    if a == 0:
        os.write(answers, {answer})
        time.sleep(60)
    return a + b
"""
    limits = Limits(seconds=600.0, call_seconds=2.0)
    tests = ("assert add(0, 2) == 2", "assert add(2, 2) == 4")
    verdict = run_tests(program, "add", tests, limits=limits)
    assert verdict.passed == (False, True)
    assert verdict.message == "test 0: a call took longer than limits.call_seconds"


def test_a_source_too_large_to_send_starts_nothing(others: set[int]) -> None:
    run_honest("print(5)")
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
    run_honest("print(5)")
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
    for number in range(24):
        if number % 2:
            program = PROGRAMS["programs"][names[number // 2 % len(names)]]
        else:
            program = f"def add(a, b): return a + b + {number}"
        tests = (f"assert add(1, 2) == {3 + number}", f"assert add(1, 2) == {4 + number}")
        limits = dataclasses.replace(LIMITS, seconds=12.0 if number % 2 else 600.0)
        jobs.append({"program": program, "entry_point": "add", "tests": tests, "limits": limits})
    with ThreadPoolExecutor(4) as threads:
        verdicts = list(threads.map(lambda job: run_tests(**job), jobs))
    assert [v.passed for v in verdicts] == [(True, False), (False, False)] * 12
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
