"""Running a plan: each run in a process of its own, several side by side."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from colearn.config import dump_config
from colearn.errors import ColearnError

from .plan import Plan, PlannedRun
from .progress import MetricsTail, Watcher
from .runs import run_status

Command = Callable[[Path, Path, bool], Sequence[str]]
"""(config file, run folder, resume) to the arguments of the process that makes the run."""

_GRACE_SECONDS = 10.0
_ERROR = re.compile(r"^(?:[\w.]*(?:Error|Exception|Interrupt)|error)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A run that ended without finishing."""

    name: str
    log: Path
    reason: str


@dataclass(slots=True)
class _Process:
    run: PlannedRun
    folder: Path
    handle: subprocess.Popen[bytes]
    tail: MetricsTail


def train_command(config: Path, folder: Path, resume: bool) -> list[str]:
    """`python -m colearn train` with this interpreter."""
    command = [sys.executable, "-m", "colearn", "train", str(config), "--out", str(folder)]
    return [*command, "--resume"] if resume else command


def launch(
    plan: Plan,
    out: Path,
    watcher: Watcher,
    *,
    command: Command = train_command,
    poll_seconds: float = 0.2,
) -> tuple[Failure, ...]:
    """Make every run of the plan that is not finished; `compare.workers` at a time.

    Unfinished runs are resumed. A failing run does not stop the others. If this process is
    interrupted or terminated, the runs are terminated and KeyboardInterrupt is raised.
    """
    workers = min(plan.config.compare.workers, len(plan.runs))
    threads = plan.config.compare.threads or max(1, _cores() // workers)
    waiting = [run for run in plan.runs if not _already_finished(run, out, watcher)]
    active: list[_Process] = []
    failures: list[Failure] = []
    with _termination_interrupts():
        try:
            while waiting or active:
                while waiting and len(active) < workers:
                    active.append(_start(waiting.pop(0), out, threads, command, watcher))
                time.sleep(poll_seconds)
                for process in list(active):
                    code = process.handle.poll()
                    _report_progress(process, watcher)
                    if code is not None:
                        active.remove(process)
                        failures += _outcome(process, code, watcher)
        finally:
            _stop(active)
    return tuple(failures)


def raise_failures(failures: Sequence[Failure], runs: int) -> None:
    """Nothing without failures.

    Errors: ColearnError, one line with the first failed run, its log and its last error.
    """
    if failures:
        first = failures[0]
        others = ", ".join(failure.name for failure in failures[1:])
        raise ColearnError(
            f"{len(failures)} of {runs} runs failed: {first.name}: {first.reason} "
            f"(log: {first.log}){'; also ' + others if others else ''}; "
            "mend the cause and run the same command again: finished runs are kept"
        )


def _already_finished(run: PlannedRun, out: Path, watcher: Watcher) -> bool:
    finished = run_status(run.folder(out)) == "finished"
    if finished:
        tail = MetricsTail(run.folder(out) / "metrics.jsonl")
        tail.advance()
        watcher.advanced(run.name, tail.environment_steps, tail.mean_return)
        watcher.ended(run.name, "already finished")
    return finished


def _start(
    run: PlannedRun, out: Path, threads: int, command: Command, watcher: Watcher
) -> _Process:
    folder = run.folder(out)
    folder.mkdir(parents=True, exist_ok=True)
    config = out / "configs" / f"{run.name}.yaml"
    config.parent.mkdir(exist_ok=True)
    config.write_text(dump_config(run.config), encoding="utf-8")
    resume = run_status(folder) == "unfinished"
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
    with (folder / "log.txt").open("ab" if resume else "wb") as log:
        handle = subprocess.Popen(
            command(config, folder, resume),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,  # its own workers end with it
        )
    watcher.started(run.name, resume)
    return _Process(run, folder, handle, MetricsTail(folder / "metrics.jsonl"))


def _report_progress(process: _Process, watcher: Watcher) -> None:
    if process.tail.advance():
        tail = process.tail
        watcher.advanced(process.run.name, tail.environment_steps, tail.mean_return)


def _outcome(process: _Process, code: int, watcher: Watcher) -> list[Failure]:
    if code == 0 and run_status(process.folder) == "finished":
        watcher.ended(process.run.name, "finished")
        return []
    log = process.folder / "log.txt"
    reason = _last_error(log) or "ended without finishing"
    if code < 0:
        reason = f"killed by {signal.Signals(-code).name}; {reason}"
    watcher.ended(process.run.name, f"failed: {reason}")
    return [Failure(name=process.run.name, log=log, reason=reason)]


def _last_error(log: Path) -> str:
    lines = [line.strip() for line in log.read_text("utf-8", "replace").splitlines()]
    lines = [line for line in lines if line]
    errors = [line for line in lines if _ERROR.match(line)]
    return (errors or lines or [""])[-1][:500]


def _stop(processes: Sequence[_Process]) -> None:
    for process in processes:
        _signal(process, signal.SIGTERM)
    deadline = time.monotonic() + _GRACE_SECONDS
    for process in processes:
        try:
            process.handle.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            _signal(process, signal.SIGKILL)
            process.handle.wait()


def _signal(process: _Process, number: signal.Signals) -> None:
    if process.handle.poll() is None:
        os.killpg(process.handle.pid, number)


@contextmanager
def _termination_interrupts() -> Iterator[None]:
    """Let SIGTERM (a scheduler, a timeout) end the runs like Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
