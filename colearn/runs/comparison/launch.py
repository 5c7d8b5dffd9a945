"""Runs a plan, with one process per run and several runs in parallel."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from colearn.config import Config, ResolvedRun, dump_config
from colearn.errors import CheckpointError, ColearnError
from colearn.runs.record import ComparisonFolder, RunFolder
from colearn.runs.record.files import write_text
from colearn.runs.record.log import last_error, log_lines, log_size
from colearn.runs.record.tail import MetricsTail, NotesTail
from colearn.text.masking import SECRETS, masked_keys

from .forks import Fork, Forks
from .outside import check_files
from .plan import Plan, PlannedRun
from .progress import Goal, Watcher

_GRACE_SECONDS = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchedRun:
    """A planned run, its folder and its name in the progress display."""

    run: PlannedRun
    out: Path
    """The comparison's folder."""
    name: str
    resolved: ResolvedRun
    """The resolved config of the run's algorithm."""

    @property
    def folder(self) -> RunFolder:
        return self.run.folder(self.out)

    @property
    def goal(self) -> Goal:
        """The run's budget and headline metric, for the progress display."""
        return Goal(self.run.budget, self.run.config.train.iterations, self.run.metric)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A run that ended without finishing."""

    name: str
    log: Path
    reason: str


@dataclass(slots=True)
class _Process:
    job: LaunchedRun
    handle: Fork
    tail: MetricsTail
    notes: NotesTail


@contextmanager
def early_forks(config: Config, algorithms: Sequence[str] | None) -> Iterator[Forks]:
    """Start a fork server, which imports modules while the runs are still being planned."""
    compared = config.compare.algorithms if algorithms is None else algorithms
    runs = len(compared) * len(config.compare.seeds)
    with _forks(config.compare.workers, runs) as forks:
        forks.begin()
        yield forks


def _forks(workers: int, runs: int) -> Forks:
    """A fork server, whose runs have by default an equal share of the cores as CPU threads.
    `run.threads` overrides this default."""
    threads = str(max(1, _cores() // max(1, min(workers, runs))))
    return Forks({**os.environ, "OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads})


def launched_runs(plan: Plan, out: Path) -> list[LaunchedRun]:
    """A plan's runs, named as in the plan."""
    return [
        LaunchedRun(run=run, out=out, name=run.name, resolved=plan.resolved[run.algorithm])
        for run in plan.runs
    ]


def launch_jobs(
    jobs: Sequence[LaunchedRun],
    watcher: Watcher,
    *,
    workers: int,
    forks: Forks | None = None,
    poll_seconds: float = 0.2,
) -> tuple[Failure, ...]:
    """Execute every unfinished run in order, `workers` at a time. `forks` is a fork server that the
    caller starts and ends.

    Unfinished runs are resumed. If a run fails, the other runs continue. If this process is
    interrupted or terminated, the runs are terminated and KeyboardInterrupt is raised.
    """
    waiting = [job for job in jobs if not already_finished(job, watcher)]
    active: list[_Process] = []
    failures: list[Failure] = []
    context: AbstractContextManager[Forks] = (
        _forks(workers, len(jobs)) if forks is None else nullcontext(forks)
    )
    with context as server, _termination_interrupts():
        try:
            while waiting or active:
                while waiting and len(active) < workers:
                    job = waiting.pop(0)
                    try:
                        active.append(_start(job, server, watcher))
                    except CheckpointError as error:
                        failures.append(not_made(job, error, watcher))
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
    """Raise the first failure, if there is one.

    Errors: ColearnError, one line with the first failed run, its log and its last error.
    """
    if failures:
        first = failures[0]
        others = ", ".join(failure.name for failure in failures[1:])
        raise ColearnError(
            f"{len(failures)} of {runs} runs failed: {first.name}: {first.reason} "
            f"(log: {first.log}){'; also ' + others if others else ''}; "
            "fix the cause and run the same command again: finished runs are kept"
        )


def already_finished(job: LaunchedRun, watcher: Watcher) -> bool:
    """Whether a run is already finished; if so, reports the run to the watcher."""
    finished = job.folder.status == "finished"
    if finished and job.run.extends(job.folder.record()):
        return False  # it is to be extended
    if finished:
        tail = job.folder.tail(job.goal.metric)
        tail.advance()
        watcher.advanced(job.name, tail.status)
        watcher.ended(job.name, f"already {job.folder.record().ending}")
    return finished


def write_config(job: LaunchedRun) -> Path:
    """Write the config with which a run starts; return the file's path."""
    config = ComparisonFolder(job.out).config(job.run.name)
    config.parent.mkdir(exist_ok=True)
    run = job.run.config.run
    here = run.model_copy(update={"folders": run.folders or (os.getcwd(),)})
    write_text(config, dump_config(job.run.config.model_copy(update={"run": here})))
    return config


def _start(job: LaunchedRun, forks: Forks, watcher: Watcher) -> _Process:
    check_files([job.resolved], job.out)  # an editor may have saved a file since
    folder = job.folder
    folder.path.mkdir(parents=True, exist_ok=True)
    config = write_config(job)
    secrets = dict(masked_keys(job.run.config.model_dump(mode="json")))
    environment = {SECRETS: json.dumps(secrets)} if secrets else {}
    resume = folder.status != "not started"
    past = log_size(folder.log) if resume else 0
    arguments = ["train", str(config), "--out", str(folder.path)]
    arguments += ["--resume"] if resume else []
    handle = forks.start(arguments, folder.log, append=resume, environment=environment)
    watcher.started(job.name, how_it_starts(folder) if resume else "started")
    return _Process(job, handle, folder.tail(job.goal.metric), NotesTail(folder.log, start=past))


def not_made(job: LaunchedRun, error: ColearnError, watcher: Watcher) -> Failure:
    """Write the error to the run's log, report it to the watcher, and return the failure."""
    job.folder.path.mkdir(parents=True, exist_ok=True)
    job.folder.log.write_text(f"error: {error}\n", encoding="utf-8")
    watcher.ended(job.name, f"failed: {error}")
    return Failure(name=job.name, log=job.folder.log, reason=str(error))


def how_it_starts(folder: RunFolder) -> str:
    """Text on how a run starts: from the beginning, or from a given iteration."""
    checkpoints = folder.checkpoints.all()
    return (
        f"resumed at iteration {checkpoints[-1].iteration}"
        if checkpoints
        else "restarted: no checkpoint"
    )


def _report_progress(process: _Process, watcher: Watcher) -> None:
    for text in process.notes.advance():
        # a collapse names the folder of its run, which bears the job's name
        watcher.noted(process.job.name, text.removeprefix(f"{process.job.name}: "))
    if process.tail.advance():
        watcher.advanced(process.job.name, process.tail.status)


def _outcome(process: _Process, code: int, watcher: Watcher) -> list[Failure]:
    folder, name = process.job.folder, process.job.name
    if code == 0 and folder.status == "finished":
        watcher.ended(name, folder.record().ending)
        return []
    reason = last_error(folder) or (log_lines(folder.log) or ["ended without finishing"])[-1][:500]
    if code < 0:
        reason = f"killed by {signal.Signals(-code).name}; {reason}"
    watcher.ended(name, f"failed: {reason}")
    return [Failure(name=name, log=folder.log, reason=reason)]


def _stop(processes: Sequence[_Process]) -> None:
    """Tell the runs to write their checkpoints and end; a second interrupt kills them."""
    for process in processes:
        _signal(process, signal.SIGTERM)
    deadline = time.monotonic() + _GRACE_SECONDS
    for process in processes:
        try:
            process.handle.wait(max(0.0, deadline - time.monotonic()))
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            deadline = time.monotonic()
            _signal(process, signal.SIGKILL)
            process.handle.wait()


def _signal(process: _Process, number: signal.Signals) -> None:
    if process.handle.poll() is None:
        with suppress(ProcessLookupError):  # the fork server has waited for it since
            os.killpg(process.handle.pid, number)


@contextmanager
def _termination_interrupts() -> Iterator[None]:
    """Make SIGTERM, as sent by a scheduler or a timeout, end the runs like Ctrl-C."""
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
