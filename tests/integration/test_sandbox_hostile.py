"""Hostile programs earn nothing, end in time and leave nothing behind."""

from __future__ import annotations

import dataclasses
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hostile_programs import HOSTILE

from colearn.sandbox import Limits, Mechanism, SandboxPool, run_tests
from colearn.sandbox.mechanism import works

TESTS = (
    "assert add(2, 3) == 5",
    "assert add(-1, 1) == 0",
    "assert candidate('a', 'b') == 'ab'",
    "try:\n    add(1, 'x')\n    assert False\nexcept TypeError:\n    pass",
)
MEMORY = 256 + os.getpid() % 256
"""Megabytes; it stands in each process's command line, by which this test knows its own."""
LIMITS = Limits(seconds=1.0, memory_mb=MEMORY, output_kb=64, file_mb=8)
SLACK = 3.0
"""Seconds, for a busy machine to start and end processes."""


@pytest.fixture(params=("bwrap", "namespaces"))
def mechanism(request: pytest.FixtureRequest) -> Mechanism:
    chosen: Mechanism = request.param
    if not works(chosen):
        pytest.skip(f"{chosen} does not work here")
    return chosen


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    (tmp_path / "secret").write_text("5")
    return tmp_path


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server


@pytest.mark.parametrize("name", HOSTILE)
def test_it_earns_nothing_and_leaves_nothing(
    name: str, mechanism: Mechanism, outside: Path, listener: socket.socket
) -> None:
    program = HOSTILE[name].replace("OUTSIDE", str(outside))
    program = program.replace("PORT", str(listener.getsockname()[1]))
    began = time.monotonic()
    verdict = run_tests(program, "add", TESTS, limits=LIMITS, mechanism=mechanism)
    assert verdict.passed == (False,) * len(TESTS), verdict
    assert verdict.error is not None
    assert verdict.message
    assert "\n" not in verdict.message
    assert time.monotonic() - began < LIMITS.seconds + SLACK
    assert _left_over() == []
    assert sorted(path.name for path in outside.iterdir()) == ["secret"]
    with pytest.raises(BlockingIOError):
        listener.accept()


def test_a_run_ends_with_the_process_that_wanted_it(mechanism: Mechanism) -> None:
    program = f"""
from colearn.sandbox import Limits, run_tests
limits = Limits(seconds=60, memory_mb={MEMORY})
program = "while True: pass"
run_tests(program, "f", "assert f()", limits=limits, mechanism="{mechanism}")
"""
    process = subprocess.Popen([sys.executable, "-c", program])
    deadline = time.monotonic() + 20
    while not _running() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert _running()
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert _left_over() == []


def test_there_are_forty_kinds() -> None:
    assert len(HOSTILE) >= 40


def test_honest_and_hostile_side_by_side_keep_their_own_verdicts(outside: Path) -> None:
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
            program = HOSTILE[names[number // 2 % len(names)]]
        else:
            program = f"def add(a, b): return a + b + {number}"
        tests = (f"assert add(1, 2) == {3 + number}", f"assert add(1, 2) == {4 + number}")
        jobs.append({"program": program, "entry_point": "add", "tests": tests})
    with SandboxPool(4, dataclasses.replace(LIMITS, seconds=4.0)) as pool:
        verdicts = pool.run_tests(jobs)
    assert [v.passed for v in verdicts] == [(True, False), (False, False)] * 12
    assert _left_over() == []


def _left_over() -> list[str]:
    """What still runs of this test's sandboxes; the kernel gets a second to end it."""
    for _ in range(20):
        found = _running()
        if not found:
            break
        time.sleep(0.05)
    return found


def _running() -> list[str]:
    """Command lines of processes of this test's sandboxes."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue  # it ended meanwhile
        if f"--memory={MEMORY << 20}".encode() in words:
            found.append(b" ".join(words).decode(errors="replace"))
    return found
