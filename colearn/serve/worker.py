"""The thread that drives the decode engine, and what other threads may ask of it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence

from colearn.generate.engine import Engine
from colearn.generate.job import Event, Failed, Job
from colearn.wire.errors import report

Deliver = Callable[[Sequence[tuple[Job, Event]]], None]

FAILURES = 3
"""Steps that fail, with no answer completed between them, before the worker gives up."""


class QueueFull(Exception):
    """More requests wait than may wait."""


class WorkerStopped(Exception):
    """The worker has ended or has given up."""


class Worker:
    """One thread around one engine.

    `deliver` is called in that thread, after each step, with what the jobs are told; `gave_up`
    once, when the engine fails again and again.
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
        self._thread.start()

    def submit(self, job: Job) -> None:
        """Errors: QueueFull, WorkerStopped."""
        with self._wake:
            if self._closing:
                raise WorkerStopped
            if self.engine.waiting >= self.max_waiting:
                raise QueueFull
            self.engine.submit(job)
            self._wake.notify()

    def forget(self, key: int) -> None:
        """Free the KV cache of a session."""
        with self._wake:
            self._forgotten.append(key)
            self._wake.notify()

    def close(self) -> None:
        """End the thread; jobs that still run are told that they failed."""
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
        """Until there is something to do; False at the end."""
        with self._wake:
            while not (self._closing or self._forgotten or self.engine.busy):
                self._wake.wait()
            return not self._closing

    def _tell(self, told: Sequence[tuple[Job, Event]], failed: Iterable[Job], message: str) -> None:
        found = [*told, *((job, Failed(message)) for job in failed)]
        if found:
            self._deliver(found)
