"""The thread that drives an engine."""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager
from typing import Any

from colearn.contract.worker import Worker, hand_over


class Echo:
    """An engine that answers its jobs in one step."""

    at_work = ()

    def __init__(self) -> None:
        self.completed = 0
        self._jobs: list[Any] = []
        self._events: list[Any] = []

    @property
    def waiting(self) -> int:
        return len(self._jobs)

    @property
    def busy(self) -> bool:
        return bool(self._jobs)

    def submit(self, job: Any) -> None:
        self._jobs.append(job)

    def step(self) -> None:
        self._events += [(job, job) for job in self._jobs]
        self.completed += len(self._jobs)
        self._jobs = []

    def take_events(self) -> list[Any]:
        events, self._events = self._events, []
        return events

    def drop_all(self) -> list[Any]:
        jobs, self._jobs = self._jobs, []
        return jobs


def test_a_job_that_arrives_as_the_idle_thread_gives_up_is_answered(monkeypatch):
    """Its wait has timed out, and the job has come before it has the lock again. As the thread
    still seems to be there, the job starts no other."""
    answered = threading.Event()
    worker = Worker(
        Echo(), deliver=lambda events: answered.set(), failed=lambda jobs, error: None, idle=0.01
    )
    wait, late = worker._wake.wait, ["job"]

    def times_out(seconds=None):
        if late:
            worker.submit(late.pop())  # the condition's lock is re-entrant
            return False
        return wait(seconds)

    monkeypatch.setattr(worker._wake, "wait", times_out)
    worker.start()
    assert answered.wait(600)


def test_an_idle_thread_ends_and_the_next_job_starts_another():
    answered = threading.Event()
    worker = Worker(
        Echo(), deliver=lambda events: answered.set(), failed=lambda jobs, error: None, idle=0.01
    )
    worker.start()
    thread = worker._thread
    thread.join(600)
    assert not thread.is_alive() and worker._thread is None
    worker.submit("job")
    assert answered.wait(600)


def test_an_error_around_the_steps_fails_the_jobs_and_the_next_are_answered():
    """It ended the thread, which still seemed to be there: every later job waited for ever."""
    answered, failed, errors = threading.Event(), threading.Event(), []

    @contextmanager
    def prepared():
        if not errors:
            raise RuntimeError("no memory")
        yield

    def note(jobs, error):
        errors.append((*jobs, str(error)))
        failed.set()

    worker = Worker(Echo(), deliver=lambda events: answered.set(), failed=note, prepared=prepared)
    worker.submit("first")
    assert failed.wait(600)
    worker.submit("second")
    assert answered.wait(600)
    assert errors == [("first", "no memory")]


def test_a_call_that_raises_stop_iteration_is_answered_as_are_those_beside_it():
    """An asyncio future refuses this error: nobody was answered."""

    async def answers():
        stopped, other = (asyncio.get_running_loop().create_future() for _ in range(2))
        hand_over([(stopped, None, StopIteration("empty")), (other, 3, None)])
        both = asyncio.gather(stopped, other, return_exceptions=True)
        return await asyncio.wait_for(both, 600)

    error, result = asyncio.run(answers())
    assert (str(error), result) == ("raised StopIteration('empty')", 3)
