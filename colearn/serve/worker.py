"""Thread that drives the decode engine, with its interface for other threads."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence

from colearn.generate.engine import Engine
from colearn.generate.job import Event, Failed, Job
from colearn.wire.errors import report

Deliver = Callable[[Sequence[tuple[Job, Event]]], None]

FAILURES = 3
"""Failed steps without a completed answer between them, after which the worker stops."""


class QueueFull(Exception):
    """The queue of requests is full."""


class WorkerStopped(Exception):
    """The worker has ended."""


class Worker:
    """Runs one engine in one thread.

    `deliver` is called in that thread after each step, with the jobs' events; `gave_up` once, if
    the engine fails repeatedly.
    """

    def __init__(
        self, engine: Engine, *, max_waiting: int, deliver: Deliver, gave_up: Callable[[], None]
    ) -> None:
        self.engine, self.max_waiting = engine, max_waiting
        self._deliver, self._gave_up = deliver, gave_up
        self._forgotten: deque[int] = deque()
        self._wake = threading.Condition()
        self._closing = False
        self._failures = 0
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def submit(self, job: Job) -> None:
        """Queues a job.

        Errors: QueueFull, WorkerStopped.
        """
        with self._wake:
            if self._closing:
                raise WorkerStopped
            if self.engine.waiting >= self.max_waiting:
                raise QueueFull
            self.engine.submit(job)
            self._wake.notify()

    def forget(self, key: int) -> None:
        """Frees the KV cache of a session."""
        with self._wake:
            self._forgotten.append(key)
            self._wake.notify()

    def close(self) -> None:
        """Ends the thread; running jobs fail."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        engine = self.engine
        while self._failures < FAILURES and self._wait():
            while self._forgotten:
                engine.sessions.forget(self._forgotten.popleft())
            failed: list[Job] = []
            try:
                engine.step()
            except Exception as error:  # noqa: BLE001 - its requests fail, the server does not
                self._failures += 1
                report(error)
                failed = engine.drop(engine.at_work)
            told = engine.told()
            if any(job.left == 0 for job, _ in told):
                self._failures = 0
            self._tell(told, failed, "the model failed on this request")
        with self._wake:
            self._closing = True
        self._tell(engine.told(), engine.drop_all(), "the server is shutting down")
        if self._failures >= FAILURES:
            self._gave_up()

    def _wait(self) -> bool:
        """Waits for work; returns False at shutdown."""
        with self._wake:
            while not (self._closing or self._forgotten or self.engine.busy):
                self._wake.wait()
            return not self._closing

    def _tell(
        self, events: Sequence[tuple[Job, Event]], failed: Iterable[Job], message: str
    ) -> None:
        events = [*events, *((job, Failed(message)) for job in failed)]
        if events:
            self._deliver(events)
