"""Worker processes that run a task's steps outside the trainer's process."""

from __future__ import annotations

import contextlib
import io
import pickle
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from multiprocessing.context import BaseContext
from typing import Any

from colearn.contract import DecPOMDP
from colearn.errors import ConfigError, reason_of
from colearn.registry.own_code import begin_worker, folders, safe_path

_TASK = "task"
"""Placeholder for the task in messages to a worker; each worker holds its own copy of the task."""


@contextlib.contextmanager
def step_workers(
    count: int, task: DecPOMDP[Any, Any], context: BaseContext | None = None
) -> Iterator[StepWorkers | None]:
    """A pool of `count` processes for the steps of `task`; None if `count` is 0 or if the task must
    be stepped in this process.

    Errors: ConfigError for a task that cannot be pickled.
    """
    if not count or task.steps_here:
        yield None
        return
    with safe_path() as added, StepWorkers(count, task, context, added=added) as pool:
        yield pool


class StepWorkers(Executor):
    """Pool of worker processes. Each worker receives the task once; a call sends only the state and
    the actions."""

    def __init__(
        self,
        count: int,
        task: DecPOMDP[Any, Any],
        context: BaseContext | None = None,
        *,
        added: bool = False,
    ) -> None:
        self._task = task
        self.costs: Counter[str] = Counter()
        """Costs of the task's services in the workers, by name."""
        arguments = (_pickled("the task", task), folders(), added)
        self._pool = ProcessPoolExecutor(count, context, initializer=_begin, initargs=arguments)

    def submit(self, call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run a function call in a worker. Errors: ConfigError for a state or an action that cannot
        be pickled."""
        outer: Future[Any] = Future()
        inner = self._pool.submit(_work, _pickled("a state", (call, args, kwargs), self._task))
        inner.add_done_callback(lambda ended: self._deliver(ended, outer))
        return outer

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._pool.shutdown(wait, cancel_futures=cancel_futures)

    def _deliver(self, ended: Future[Any], outer: Future[Any]) -> None:
        if ended.cancelled():
            outer.cancel()
        elif (error := ended.exception()) is not None:
            outer.set_exception(error)
        else:
            answer, costs = pickle.loads(ended.result())
            self.costs.update(costs)
            outer.set_result(answer)


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, task: object) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._task = task

    def persistent_id(self, value: object) -> str | None:
        return _TASK if value is self._task and value is not None else None


class _Unpickler(pickle.Unpickler):
    def persistent_load(self, name: str) -> object:
        return _task()


def _pickled(name: str, value: object, task: object = None) -> bytes:
    file = io.BytesIO()
    try:
        _Pickler(file, task).dump(value)
    except Exception as error:  # noqa: BLE001 - __reduce__ and __getstate__ raise anything
        raise ConfigError(
            f"run.step_workers: {name} cannot be sent to a worker process ({reason_of(error)}); "
            "keep what cannot be pickled out of it, or set it to 0"
        ) from None
    return file.getvalue()


_OWN: list[DecPOMDP[Any, Any]] = []
"""The worker's copy of the task, in a worker process."""


def _task() -> DecPOMDP[Any, Any]:
    return _OWN[0]


def _begin(payload: bytes, own_folders: Sequence[str], added: bool) -> None:
    # Ctrl-C reaches the workers, too, and is the trainer's to answer
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    begin_worker(own_folders, added)
    _OWN[:] = [pickle.loads(payload)]


def _work(payload: bytes) -> bytes:
    call, args, kwargs = _Unpickler(io.BytesIO(payload)).load()
    before = Counter(_task().costs())
    answer = call(*args, **kwargs)
    spent = Counter(_task().costs())
    spent.subtract(before)
    return _pickled("an outcome", (answer, spent))
