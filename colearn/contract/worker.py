"""The worker thread that runs an engine, and the transfer of results to awaiting futures."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Generic, Protocol, TypeVar

from .turns import Turns, turns_of

Job = TypeVar("Job")
Event = TypeVar("Event")

Ended = tuple[asyncio.Future[Any], Any, BaseException | None]
"""A tuple of a future, its result, and its error (None if there is no error)."""

IDLE = 2.0
"""Number of seconds without work after which a trainer's worker thread ends; the next job starts
another thread."""


class Steps(Protocol[Job, Event]):
    """The engine interface that a worker uses. All methods except `submit` are called in the same
    thread."""

    completed: int
    """Number of jobs that were answered."""

    @property
    def waiting(self) -> int:
        """Number of jobs that have not begun."""

    @property
    def busy(self) -> bool:
        """Whether any job is unfinished."""

    @property
    def at_work(self) -> Sequence[Job]:
        """The jobs that the caller must drop if a step fails."""

    def submit(self, job: Job) -> None:
        """Queue a job; safe from any thread."""

    def step(self) -> None:
        """Advance the jobs by one step. Errors: any exception; the caller must then drop the jobs
        in `at_work`."""

    def take_events(self) -> list[tuple[Job, Event]]:
        """Events since the last call."""

    def drop(self, jobs: Iterable[Job]) -> list[Job]:
        """Removes jobs, and all jobs that depend on the removed jobs. Returns all removed jobs."""

    def drop_all(self) -> list[Job]:
        """Remove all jobs and return them."""


class WorkerStopped(Exception):
    """Raised when the worker has ended."""


class QueueFull(Exception):
    """Raised when the queue of requests is full."""


class Worker(Generic[Job, Event]):
    """Runs one engine in one thread.

    After each step, the thread calls `deliver` with the events of the jobs. If jobs end early, the
    thread calls `failed` with these jobs and the error; the error is None if the jobs end because
    the worker ends.
    """

    def __init__(
        self,
        engine: Steps[Job, Event],
        *,
        deliver: Callable[[Sequence[tuple[Job, Event]]], None],
        failed: Callable[[Sequence[Job], BaseException | None], None],
        prepared: Callable[[], AbstractContextManager[object]] = nullcontext,
        place: Callable[[], Hashable] | None = None,
        joins: Callable[[int], bool] = lambda waiting: True,
        max_waiting: int | None = None,
        most_failures: int | None = None,
        gave_up: Callable[[], None] = lambda: None,
        idle: float | None = IDLE,
    ) -> None:
        """`prepared` returns a context manager that is entered while the engine is busy. Engines
        with the same `place` take turns. `joins` receives the number of newly arrived jobs and
        returns whether these jobs now join the running jobs.

        After `most_failures` failed steps in a row without an answer, the worker ends and calls
        `gave_up`. If `idle` is None, the thread lives until `close`.
        """
        self.engine, self.max_waiting = engine, max_waiting
        self._deliver, self._failed, self._prepared = deliver, failed, prepared
        self._place, self._joins, self._idle = place, joins, idle
        self._most_failures, self._gave_up = most_failures, gave_up
        self._arrived: list[Job] = []
        self._calls: list[Callable[[], object]] = []
        self._wake = threading.Condition()
        self._closing = False
        self._failures, self._completed = 0, 0
        self._thread: threading.Thread | None = None

    @property
    def waiting(self) -> int:
        """Number of jobs that have not begun."""
        return len(self._arrived) + self.engine.waiting

    def start(self) -> None:
        """Starts the thread. Unless `idle` is None, a submitted job also starts the thread."""
        with self._wake:
            self._start()

    def submit(self, *jobs: Job) -> None:
        """Queues jobs, which the engine receives together.

        Errors: QueueFull, WorkerStopped.
        """
        with self._wake:
            if self._closing:
                raise WorkerStopped
            if self.max_waiting is not None and self.waiting >= self.max_waiting:
                raise QueueFull
            self._arrived += jobs
            if self._idle is not None:
                self._start()
            self._wake.notify()

    def call(self, function: Callable[[], object]) -> None:
        """Runs a function in the thread between two steps."""
        with self._wake:
            self._calls.append(function)
            self._wake.notify()

    def close(self) -> None:
        """Ends the thread; running jobs fail."""
        with self._wake:
            self._closing = True
            thread = self._thread
            self._wake.notify()
        if thread is not None:
            thread.join()

    def _start(self) -> None:
        if self._thread is None and not self._closing:
            self._thread = threading.Thread(target=self._run, name="engine", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while self._wait():
            try:
                self._work()
            except BaseException as error:  # noqa: BLE001 - without this thread no job is answered
                self._fail_all(error)
            if self._failures == self._most_failures:
                self._end()
                self._gave_up()
                return
        if self._closing:
            self._end()

    def _wait(self) -> bool:
        """Waits for work; returns False when the thread must end."""
        with self._wake:
            # checks again after the timeout: a job may arrive before this thread has the lock
            if not self._wake.wait_for(self._needed, self._idle):
                self._thread = None
                return False
            return not self._closing

    def _needed(self) -> bool:
        """Whether the thread has work."""
        return bool(self._closing or self._arrived or self._calls or self.engine.busy)

    def _work(self) -> None:
        """Steps until no job is left, the worker ends, or another engine waits for its turn.

        The thread delivers the last events after the engine's turn has ended, because these events
        may start an update.
        """
        turns = Turns() if self._place is None else turns_of(self._place())
        with turns.turn(), self._prepared():
            last = self._step(turns)
            while self.engine.busy and not self._closing and self._failures != self._most_failures:
                last()
                last = self._step(turns)
        last()

    def _step(self, turns: Turns) -> Callable[[], None]:
        """Advances the engine; returns a function that reports the step's events and errors."""
        engine = self.engine
        with self._wake:
            calls, self._calls = self._calls, []
            if not (turns.another_waits and engine.busy) and self._joins(len(self._arrived)):
                for job in self._arrived:
                    engine.submit(job)
                self._arrived = []
        for call in calls:
            call()
        dropped: list[Job] = []
        error: BaseException | None = None
        try:
            engine.step()
        except BaseException as raised:  # noqa: BLE001 - its jobs fail, the others continue
            self._failures += 1
            error, dropped = raised, engine.drop(engine.at_work)
        events = engine.take_events()
        if engine.completed > self._completed:
            self._completed, self._failures = engine.completed, 0

        def report() -> None:
            if events:
                self._deliver(events)
            if dropped:
                self._failed(dropped, error)

        return report

    def _end(self) -> None:
        with self._wake:
            self._closing = True
        if events := self.engine.take_events():
            self._deliver(events)
        self._fail_all(None)

    def _fail_all(self, error: BaseException | None) -> None:
        with self._wake:
            arrived, self._arrived = self._arrived, []
        if dropped := [*self.engine.drop_all(), *arrived]:
            self._failed(dropped, error)


def hand_over(ended: Iterable[Ended]) -> None:
    """Complete futures with their results or errors, waking each event loop only once.

    Futures that were cancelled, or whose event loop has closed, are not changed.
    """
    by_loop: dict[asyncio.AbstractEventLoop, list[Ended]] = {}
    for completion in ended:
        by_loop.setdefault(completion[0].get_loop(), []).append(completion)
    for loop, completions in by_loop.items():
        try:
            loop.call_soon_threadsafe(_end_open, completions)
        except RuntimeError:
            if not loop.is_closed():
                raise


def _end_open(ended: Iterable[Ended]) -> None:
    for completion in ended:
        if not completion[0].done():
            _end(completion)


def _end(ended: Ended) -> None:
    future, result, error = ended
    if error is None:
        future.set_result(result)
        return
    future.set_exception(accepted_error(error))


def accepted_error(error: BaseException) -> BaseException:
    """Returns an error that a future of asyncio accepts: itself, but for a StopIteration."""
    return RuntimeError(f"raised {error!r}") if isinstance(error, StopIteration) else error
