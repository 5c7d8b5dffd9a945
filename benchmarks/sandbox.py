"""Program runs per second in the sandbox, against two bare interpreter starts.

    python benchmarks/sandbox.py [--runs 200] [--workers 1,2,4]

A run is one program with five tests: one process for the program and one for the tests, both fresh,
both in a sandbox. The yardstick is two bare interpreters that start and end. Each round measures
all of them in turn, so that a change of the machine's load meets all alike. Where a control group
can be made (as root), the processor time of a run with all its processes is measured too: on a busy
machine that says more than the runs per second.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from colearn.programs.sandbox import Mechanism, run_tests
from colearn.programs.sandbox.mechanism import works
from colearn.programs.sandbox.place import find_place

PROGRAM = """
def aux(text):
    return [word for word in text.split() if word.isalpha()]


def longest(text):
    return max(aux(text), key=len, default="")
"""
TESTS = """
def check(candidate):
    assert candidate("a bb ccc") == "ccc"
    assert candidate("") == ""
    assert candidate("1 22 a") == "a"
    assert candidate("aa bb") == "aa"
    assert candidate("x" * 100) == "x" * 100
"""
ROUNDS = 5


class ProcessorTime:
    """Of this process and all that it starts from now on, counted by a control group."""

    GROUP = Path("/sys/fs/cgroup/cpuacct") / f"colearn-sandbox-{os.getpid()}"

    def __init__(self) -> None:
        self.GROUP.mkdir()
        self._home = self.GROUP.parent / "cgroup.procs"
        (self.GROUP / "cgroup.procs").write_text(str(os.getpid()))

    def seconds(self) -> float:
        return int((self.GROUP / "cpuacct.usage").read_text()) / 1e9

    def close(self) -> None:
        for pid in (self.GROUP / "cgroup.procs").read_text().split():
            self._home.write_text(pid)
        self.GROUP.rmdir()


def measure_sandbox(mechanism: Mechanism, workers: int, runs: int) -> float:
    """Runs per second."""
    job = {"program": PROGRAM, "entry_point": "longest", "tests": TESTS}
    with ThreadPoolExecutor(workers) as threads:
        began = time.perf_counter()
        verdicts = list(threads.map(lambda _: run_tests(**job, mechanism=mechanism), range(runs)))
        seconds = time.perf_counter() - began
    assert all(verdict.all_passed and len(verdict.passed) == 5 for verdict in verdicts)
    return runs / seconds


def measure_bare(workers: int, runs: int) -> float:
    """Pairs of bare interpreters per second."""
    command = [find_place().interpreter, "-s", "-S", "-P", "-B", "-c", ""]

    def pair(_: int) -> None:
        both = [subprocess.Popen(command, env={}) for _ in range(2)]
        for process in both:
            process.wait()

    with ThreadPoolExecutor(workers) as threads:
        began = time.perf_counter()
        list(threads.map(pair, range(runs)))
        return runs / (time.perf_counter() - began)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200, help="per measurement")
    parser.add_argument("--workers", default="1,2,4", help="numbers of runs at once")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # `unsafe` is measured on purpose
    counts = [int(word) for word in arguments.workers.split(",")]
    # before anything is started, so that it holds what is started
    clock = ProcessorTime() if os.access(ProcessorTime.GROUP.parent, os.W_OK) else None
    measures: dict[str, Callable[[int, int], float]] = {"two bare interpreters": measure_bare}
    mechanisms: tuple[Mechanism, ...] = ("bwrap", "unsafe") if works() else ("unsafe",)
    for mechanism in mechanisms:
        measures[mechanism] = lambda workers, runs, m=mechanism: measure_sandbox(m, workers, runs)
    print(f"load before: {os.getloadavg()[0]:.1f} on {len(os.sched_getaffinity(0))} processors")
    print("| mechanism | at once | runs/s, median (least - most) | share of the first | ms a run |")
    print("|---|---|---|---|---|")
    runs = max(arguments.runs // ROUNDS, 1)
    for workers in counts:
        speeds: dict[str, list[float]] = {name: [] for name in measures}
        spent = dict.fromkeys(measures, 0.0)
        for _ in range(ROUNDS):
            for name, measure in measures.items():
                before = clock.seconds() if clock else 0.0
                speeds[name].append(measure(workers, runs))
                spent[name] += (clock.seconds() if clock else 0.0) - before
        firsts = speeds["two bare interpreters"]
        for name, rates in speeds.items():
            shares = [one / first for one, first in zip(rates, firsts, strict=True)]
            spread = f"{statistics.median(rates):.1f} ({min(rates):.1f} - {max(rates):.1f})"
            share = statistics.median(shares)
            cost = f"{1000 * spent[name] / runs / ROUNDS:.1f}" if clock else "not counted"
            print(f"| {name} | {workers} | {spread} | {share:.2f} | {cost} |", flush=True)
    if clock:
        clock.close()
    print(f"load after: {os.getloadavg()[0]:.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
