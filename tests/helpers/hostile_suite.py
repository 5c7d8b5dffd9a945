"""Runs hostile and honest programs in the sandbox, and finds what they left behind.

python tests/helpers/hostile_suite.py  # of the installed colearn; prints failures
"""

from __future__ import annotations

import dataclasses
import os
import sys
import time
from collections.abc import Container
from pathlib import Path

from hostile_answers import ANSWERS, SEARCH
from hostile_calls import ATTEMPTS, calls_by_number, script
from hostile_programs import HOSTILE
from hostile_states import Forgery

from colearn.programs.sandbox import Limits, run_program, run_tests
from colearn.programs.sandbox.statements import take_apart

PROGRAMS = HOSTILE | ANSWERS
TESTS = (
    "assert add(2, 3) == 5",
    "assert add(-1, 1) == 0",
    "assert candidate('a', 'b') == 'ab'",
    "try:\n    add(1, 'x')\n    assert False\nexcept TypeError:\n    pass",
)
LIMITS = Limits(seconds=0.6, memory_mb=256, output_kb=64, file_mb=8)
SLACK = 50.0
"""Seconds over its limit that a run may take: less than the minute for which programs sleep."""

HONEST = {
    "asyncio": "import asyncio\nasync def f(): return 5\nprint(asyncio.run(f()))",
    "threads": (
        "import threading\nfound = []\nt = threading.Thread(target=found.append, args=(5,))\n"
        "t.start(); t.join(); print(found[0])"
    ),
    "an executor": (
        "from concurrent.futures import ThreadPoolExecutor as T\n"
        "with T(4) as pool: print(sum(pool.map(int, '23')))"
    ),
    "a file that is flushed to the disk": (
        "import os\nwith open('x', 'w') as f:\n    f.write('5'); f.flush(); os.fsync(f.fileno())\n"
        "print(open('x').read())"
    ),
    "a temporary folder": (
        "import tempfile, pathlib\nwith tempfile.TemporaryDirectory() as d:\n"
        "    p = pathlib.Path(d, 'x'); p.touch(); p.write_text('5'); print(p.read_text())"
    ),
    "a data base in memory": (
        "import sqlite3\nprint(sqlite3.connect(':memory:').execute('select 2 + 3').fetchone()[0])"
    ),
    "a local pair of sockets": (
        "import socket\na, b = socket.socketpair()\na.sendall(b'5')\nprint(b.recv(9).decode())"
    ),
    "a timer": (
        "import signal, time\nsignal.signal(signal.SIGALRM, lambda *a: print(5))\n"
        "signal.setitimer(signal.ITIMER_REAL, 0.01)\ntime.sleep(0.1)"
    ),
    "a thread that C joins": (
        "import ctypes, time\nlibc = ctypes.CDLL(None)\n"
        "run = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(lambda _: time.sleep(0.1))\n"
        "t = ctypes.c_ulong()\nlibc.pthread_create(ctypes.byref(t), None, run, None)\n"
        "print(5 + libc.pthread_join(t, None))"
    ),
    "many threads that wait for each other": (
        "import queue, threading\nq, r = queue.Queue(1), queue.Queue(1)\n"
        "def work():\n    for _ in range(50): r.put(q.get())\n"
        "ts = [threading.Thread(target=work) for _ in range(8)]\n[t.start() for t in ts]\n"
        "for _ in range(400): q.put(1); r.get()\n[t.join() for t in ts]\nprint(5)"
    ),
    "reads and writes of several buffers": (
        "import os\nf = os.open('x', os.O_CREAT | os.O_RDWR)\nos.pwritev(f, [b'4', b'5'], 0)\n"
        "b = bytearray(1)\nos.preadv(f, [b], 1)\nprint(b.decode())"
    ),
    "descriptors that are closed by range": (
        "import os\nfs = [os.dup(1) for _ in range(9)]\nos.closerange(fs[0], fs[-1] + 1)\nprint(5)"
    ),
    "a map of a file of its own": (
        "import mmap\nf = open('x', 'wb+')\nf.write(b'4')\nf.flush()\n"
        "m = mmap.mmap(f.fileno(), 0)\nm.madvise(mmap.MADV_WILLNEED)\nm[:] = b'5'\n"
        "print(open('x').read())"
    ),
    "memory below the limit": "print(len(bytearray(100 << 20)) // (20 << 20))",
    "an output that is closed before the work is done": (
        "import os, time\nprint(5, flush=True)\nos.close(1)\nos.close(2)\ntime.sleep(0.2)"
    ),
    "an end that takes its time": (
        "import atexit, time\natexit.register(time.sleep, 0.2)\nprint(5, flush=True)"
    ),
}


def run_searches() -> list[str]:
    """What a program finds that looks at all that it is shown, and one that does so after it."""
    limits = dataclasses.replace(LIMITS, seconds=600.0)
    return [run_program(SEARCH, limits=limits).text for _ in range(2)]


def run_attempts(attempts: dict[str, str]) -> list[str]:
    """The attempts that succeeded, and what ended the program before it had made all of them."""
    limits = dataclasses.replace(LIMITS, seconds=600.0)
    output = run_program(script(attempts), limits=limits)
    *succeeded, last = output.text.splitlines() or [output.message]
    return succeeded if last == f"tried {len(attempts)}" else [*succeeded, last, output.message]


def run_hostile(program: str) -> list[str]:
    """What is wrong with a hostile program's run; OUTSIDE and PORT are filled in."""
    began = time.monotonic()
    verdict = run_tests(program, "add", TESTS, limits=LIMITS)
    seconds = time.monotonic() - began
    if any(verdict.passed):
        return [f"earned {verdict.passed}"]
    if verdict.error is None or not verdict.message or not verdict.message.isprintable():
        return [f"says {verdict.error!r}, {verdict.message!r}"]
    return [] if seconds < LIMITS.seconds + SLACK else [f"took {seconds:.1f} s"]


def run_forgery(forgery: Forgery) -> list[str]:
    """What is wrong with a program that skips what its tests rely on."""
    limits = Limits(seconds=20.0, output_kb=64)
    verdict = run_tests(forgery.program, "f", forgery.tests, limits=limits)
    tests = take_apart(forgery.tests, "f").tests
    earned = tuple(number < forgery.earned for number in range(tests))
    return [] if verdict.passed == earned and verdict.error and verdict.message else [repr(verdict)]


def run_twin(forgery: Forgery) -> list[str]:
    """What is wrong with the honest program beside it."""
    verdict = run_tests(forgery.honest, "f", forgery.tests, limits=Limits(seconds=600.0))
    return [] if verdict.all_passed and not verdict.message else [repr(verdict)]


def run_honest(program: str) -> list[str]:
    output = run_program(program, limits=Limits(seconds=600.0))
    return [] if (output.text, output.error) == ("5\n", None) else [repr(output)]


TRACKER = "multiprocessing.resource_tracker"
"""Python's own: the first pool of a process starts it, and it stays."""


def descendants() -> dict[int, str]:
    """Our processes and theirs, with their command lines; without Python's
    resource tracker."""
    parents, commands = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state = (folder / "stat").read_text().rpartition(")")[2].split()
            commands[int(folder.name)] = (folder / "cmdline").read_text().replace("\0", " ")
        except OSError:
            continue  # it ended meanwhile
        parents[int(folder.name)] = int(state[1])
    ours = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return {
        pid: commands[pid]
        for pid in ours - {os.getpid()}
        if not (parents[pid] == os.getpid() and TRACKER in commands[pid])
    }


def left_over(others: Container[int] = ()) -> dict[int, str]:
    """What still runs beside `others`; the kernel gets a few seconds to end it."""
    for _ in range(100):
        left = {pid: line for pid, line in descendants().items() if pid not in others}
        if not left:
            break
        time.sleep(0.05)
    return left


def main() -> int:
    """The programs for which it matters where the library is installed, and what they left."""
    run_honest("print(5)")  # what is made once is made
    wrong = {"searches": [text for text in run_searches() if text != "[]\n"]}
    wrong |= {name: run_honest(program) for name, program in HONEST.items()}
    wrong |= {"attempts": run_attempts(ATTEMPTS), "calls": run_attempts(calls_by_number())}
    wrong["left behind"] = [*left_over().values()]
    for name, said in wrong.items():
        if said:
            print(name, *said, sep=": ")
    return 1 if any(wrong.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
