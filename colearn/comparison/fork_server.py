"""The process that runs are forked from: `python -m colearn.comparison.fork_server`.

A request is a line of JSON on standard input, an answer one on standard output: `started` with the
process's number, from the process itself, and `ended` with its exit code. Where a fork cannot have
what its parent has (an accelerator, a system whose libraries do not bear it), the process forked
starts Python anew.
"""

from __future__ import annotations

import importlib
import json
import os
import runpy
import select
import sys
from typing import Any

_NEEDED = (
    "colearn.cli.train",
    "colearn.experiment.loop",
    "transformers.generation.utils",
    "transformers.models.auto.modeling_auto",
    "transformers.models.auto.tokenization_auto",
    "transformers.models.llama.modeling_llama",
)
"""What every run imports; the last is the embedded model's."""
_POLL_SECONDS = 0.05


def main() -> None:
    answers = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what an import prints is no answer
    anew = _must_start_anew()
    running = 0
    heard = b""
    while True:
        ready = select.select([sys.stdin], [], [], _POLL_SECONDS if running else None)[0]
        running -= _bury(answers) if running else 0
        if not ready:
            continue
        said = os.read(sys.stdin.fileno(), 65536)
        if not said:
            return
        *lines, heard = (heard + said).split(b"\n")
        for line in lines:
            if os.fork() == 0:
                _become(json.loads(line), answers, anew)
                return
            running += 1


def _must_start_anew() -> bool:
    """Import what runs need, unless they cannot have it."""
    if sys.platform != "linux":
        return True
    import torch

    if torch.accelerator.is_available():
        return True
    for name in _NEEDED:
        importlib.import_module(name)
    return False


def _bury(answers: int) -> int:
    """Tell of the processes that have ended; their number."""
    count = 0
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return count
        if not pid:
            return count
        _say(answers, {"ended": pid, "code": os.waitstatus_to_exitcode(status)})
        count += 1


def _become(request: dict[str, Any], answers: int, anew: bool) -> None:
    """In the forked process: run `colearn` with the arguments."""
    os.setsid()  # its own workers end with it
    _say(answers, {"started": os.getpid()})
    os.close(answers)
    nothing = os.open(os.devnull, os.O_RDONLY)
    mode = os.O_APPEND if request["append"] else os.O_TRUNC
    log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | mode, 0o666)
    for file, stream in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(file, stream)
    os.close(nothing)
    os.close(log)
    os.environ["COLEARN_PARENT"] = str(os.getppid())  # the run ends with that process
    if anew:
        os.execv(sys.executable, [sys.executable, "-m", "colearn", *request["arguments"]])
    sys.argv = ["colearn", *request["arguments"]]
    runpy.run_module("colearn", run_name="__main__", alter_sys=True)  # as `python -m colearn` does


def _say(answers: int, told: dict[str, int]) -> None:
    os.write(answers, json.dumps(told).encode() + b"\n")


if __name__ == "__main__":
    main()
