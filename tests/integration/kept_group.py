"""Pairs of processes that end while something still holds their gloo group, whose threads starve.

    python kept_group.py PAIRS

Prints the exit status of each process, as `os.waitpid` gives it.
"""

from __future__ import annotations

import atexit
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
from torch import distributed

from colearn.training import processes

HELD: list[object] = []


def starve_group_threads() -> None:
    for thread in Path("/proc/self/task").iterdir():
        if "gloo_runloop" in (thread / "comm").read_text():
            os.sched_setscheduler(int(thread.name), os.SCHED_IDLE, os.sched_param(0))


def end_with_group(rank: int, path: str) -> None:
    os.sched_setaffinity(0, {rank % (os.cpu_count() or 1)})
    distributed.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=2)
    HELD.append(distributed.GroupMember.WORLD)
    atexit.register(processes._leave)
    starve_group_threads()
    distributed.all_gather_object([None, None], "x" * 1000)
    sys.exit(0)


def spin(cpu: int) -> None:
    os.sched_setaffinity(0, {cpu % (os.cpu_count() or 1)})
    while True:
        pass


def forked(work: Callable[..., None], *arguments: object) -> int:
    number = os.fork()
    if number == 0:
        work(*arguments)
    return number


def main() -> None:
    torch.set_num_threads(1)
    others = [forked(spin, cpu) for cpu in (0, 1)]
    for _ in range(int(sys.argv[1])):
        path = tempfile.mktemp()
        pair = [forked(end_with_group, rank, path) for rank in (0, 1)]
        for number in pair:
            print(os.waitpid(number, 0)[1])
    for number in others:
        os.kill(number, 9)


if __name__ == "__main__":
    main()
