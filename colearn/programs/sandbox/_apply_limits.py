"""Sets limits and drops privileges inside the sandbox, before the program runs."""

from __future__ import annotations

import os
import resource
import sys

THREADS = 32
"""Thread limit of a program with one process; with more processes, threads count as processes."""

SIGNALS = 128
"""Limit on pending signals, timers included."""


def apply_limits(arguments: list[str]) -> None:
    """Apply `--name=number` limits to this process and its children."""
    limits = dict(word.lstrip("-").split("=") for word in arguments)
    memory = int(limits["memory"])
    processes = int(limits["processes"])
    cpu = int(limits["cpu"])
    size = int(limits["file"])
    if limits["uid"] != "-":
        # the kernel does not count root's processes, so switch to an unprivileged user
        uid = int(limits["uid"])
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    _limit(resource.RLIMIT_AS, memory // processes)
    _limit(resource.RLIMIT_FSIZE, size)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_NOFILE, 64)
    _limit(resource.RLIMIT_MSGQUEUE, 0)
    _limit(resource.RLIMIT_MEMLOCK, 0)
    _limit(resource.RLIMIT_SIGPENDING, SIGNALS)
    if limits["count"] == "1":
        # the first process of the namespace counts too, unless it is root
        threads = THREADS if processes == 1 else 0
        _limit(resource.RLIMIT_NPROC, processes + threads + (limits["uid"] == "-"))
    _, hard_limit = resource.getrlimit(resource.RLIMIT_CPU)
    hard = cpu + 1 if hard_limit == resource.RLIM_INFINITY else min(cpu + 1, hard_limit)
    resource.setrlimit(resource.RLIMIT_CPU, (min(cpu, hard), hard))
    sys.argv = ["program"]


def _limit(kind: int, value: int) -> None:
    _, hard_limit = resource.getrlimit(kind)
    value = value if hard_limit == resource.RLIM_INFINITY else min(value, hard_limit)
    resource.setrlimit(kind, (value, value))
