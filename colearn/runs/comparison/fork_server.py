"""Fork server for the runs of a comparison: `python -m colearn.runs.comparison.fork_server`.

Requests are lines of JSON on standard input. Answers are lines on standard output: the forked
process itself sends `started` with its process ID, and the server sends `ended` with the exit code.
If forking an initialised process is unsafe (with an accelerator, or on a system other than Linux),
the forked process starts a new Python. The server ends without a message when its parent process
has ended.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import runpy
import select
import signal
import sys
from typing import Any

from colearn.runs.comparison.heap import one_heap

_NEEDED = (
    "colearn.entry.cli.train",
    "colearn.training.loop",
    "transformers.generation.utils",
    "transformers.models.auto.modeling_auto",
    "transformers.models.auto.tokenization_auto",
    "transformers.models.llama.modeling_llama",
)
"""Modules that every run imports, except for the last module, which the embedded model needs."""
_POLL_SECONDS = 0.05
_PR_SET_PDEATHSIG = 1


def main() -> None:
    _end_with_parent()
    one_heap()
    answers = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what an import prints is no answer
    new_python = _must_start_python()
    server, running = os.getpid(), 0
    buffered = b""
    while True:
        ready = select.select([sys.stdin], [], [], _POLL_SECONDS if running else None)[0]
        running -= _report_ended(answers) if running else 0
        if not ready:
            continue
        data = os.read(sys.stdin.fileno(), 65536)
        if not data:
            return
        *lines, buffered = (buffered + data).split(b"\n")
        for line in lines:
            if os.fork() == 0:
                _become(json.loads(line), answers, server, new_python)
                return
            running += 1


def _end_with_parent() -> None:
    """Let the operating system end this process with its parent, even during imports."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if _input_is_closed():  # the parent had ended before the system was asked
            sys.exit()


def _input_is_closed() -> bool:
    """Whether no process can write further requests; earlier requests may still be unread."""
    poll = select.poll()
    poll.register(sys.stdin, 0)
    return bool(poll.poll(0))


def _must_start_python() -> bool:
    """Import the modules that runs need and return False. If forks must start a new Python, return
    True without importing these modules."""
    if sys.platform != "linux":
        return True
    import torch

    if torch.accelerator.is_available():
        return True
    for name in _NEEDED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # a run would copy the memory of all these objects when it collects garbage or ends
    return False


def _report_ended(answers: int) -> int:
    """Report the forked processes that have ended; return the number of these processes."""
    count = 0
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return count
        if not pid:
            return count
        _send(answers, {"ended": pid, "code": os.waitstatus_to_exitcode(status)})
        count += 1


def _become(request: dict[str, Any], answers: int, server: int, new_python: bool) -> None:
    """Run `colearn` with the request's arguments, in a process forked from `server`."""
    os.setsid()  # its own workers end with it
    _send(answers, {"started": os.getpid()})
    os.close(answers)
    null = os.open(os.devnull, os.O_RDONLY)
    mode = os.O_APPEND if request["append"] else os.O_TRUNC
    log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | mode, 0o666)
    for file, stream in ((null, 0), (log, 1), (log, 2)):
        os.dup2(file, stream)
    os.close(null)
    os.close(log)
    os.environ.update(request["environment"])
    os.environ["COLEARN_PARENT"] = str(server)  # the run ends with that process
    if new_python:
        os.execv(sys.executable, [sys.executable, "-P", "-m", "colearn", *request["arguments"]])
    sys.argv = ["colearn", *request["arguments"]]
    runpy.run_module("colearn", run_name="__main__", alter_sys=True)  # as `python -m colearn` does


def _send(answers: int, message: dict[str, int]) -> None:
    try:
        os.write(answers, json.dumps(message).encode() + b"\n")
    except BrokenPipeError:  # the parent has ended
        sys.exit()


if __name__ == "__main__":
    main()
