"""Learners, frozen copies and engines whose models are in a `ModelWorker` elsewhere."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from colearn.contract import (
    Accumulated,
    BatchEngine,
    FrozenCopy,
    Learner,
    NetworkKey,
    Objective,
    Prepared,
    TokenAnswer,
    TokenHistory,
    TokenRequest,
    WeightUpdate,
)
from colearn.contract.rows import Outputs, Row
from colearn.contract.timeline import updates
from colearn.errors import CheckpointError

from .model_worker import SentAnswer, SentRequest

Call = Callable[..., Any]
"""Calls a method of a `ModelWorker` by name, waits, and returns its result or raises its error."""


class Link:
    """Connection to one worker. What was collected here is freed there before the next call."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self.released: deque[int] = deque()

    def __call__(self, method: str, *args: Any) -> Any:
        if self.released:
            numbers = [self.released.popleft() for _ in range(len(self.released))]
            self._call("drop", numbers)
        return self._call(method, *args)


class RemoteHandle:
    """Something that a worker keeps as long as this object lives."""

    def __init__(self, link: Link, number: int) -> None:
        self.link, self.number = link, number

    def __del__(self) -> None:
        self.link.released.append(self.number)


@dataclass(frozen=True, slots=True, eq=False)
class RemotePrepared(Prepared):
    """Rows that a worker's learner has cut."""

    kept: RemoteHandle


class RemoteLearner(Learner):
    """Rows and objectives travel to the worker, numbers come back; weights only where sent for."""

    def __init__(self, key: NetworkKey, link: Link) -> None:
        self.key, self.link, self.name = key, link, str(key)
        self.steps = 0

    def _do(self, method: str, *args: Any) -> Any:
        result, self.steps = self.link("learner", self.key, method, *args)
        return result

    @updates
    def evaluate(
        self, groups: Sequence[Sequence[Row]], *, reference: bool = False
    ) -> list[list[Outputs]]:
        evaluated: list[list[Outputs]] = self.link("evaluate", self.key, groups, reference)
        return evaluated

    def prepare(self, groups: Sequence[Sequence[Row]]) -> RemotePrepared:
        kept = tuple(tuple(group) for group in groups)
        return RemotePrepared(kept, RemoteHandle(self.link, self.link("prepare", self.key, kept)))

    @updates
    def accumulate(self, prepared: Prepared, objective: Objective) -> Accumulated:
        assert isinstance(prepared, RemotePrepared), "prepared by another kind of learner"
        result: Accumulated = self.link("accumulate", self.key, prepared.kept.number, objective)
        return result

    @updates
    def step(self, done: float) -> dict[str, float]:
        metrics: dict[str, float] = self._do("step", done)
        return metrics

    def observe(self, returns: Sequence[float], centre: float) -> None:
        self._do("observe", list(returns), centre)

    def shift(self, by: float) -> None:
        self._do("shift", by)

    def save(self, folder: Path) -> None:
        """Errors: CheckpointError if the worker's folder is not this machine's."""
        folder = folder.absolute()
        self._do("save", folder)
        if not folder.is_dir():
            raise CheckpointError(
                f"run.host: the worker of {self.name} has written a checkpoint that is not here, "
                f"{folder}; give --out a folder on a file system that all nodes share"
            )

    def load(self, folder: Path) -> None:
        self._do("load", folder.absolute())

    def publish(self) -> WeightUpdate:
        update: WeightUpdate = self._do("publish")
        return update

    def weights(self) -> dict[str, Any]:
        """A copy of the trained weights, by name."""
        weights: dict[str, Any] = self._do("weights")
        return weights


class RemoteCopy(FrozenCopy):
    """It follows its learner in their worker."""

    def __init__(self, key: NetworkKey, link: Link) -> None:
        self.key, self.link = key, link

    def copy_weights(self) -> None:
        self.link("frozen_copy", self.key, "copy_weights")

    def evaluate(self, groups: Sequence[Sequence[Row]]) -> list[list[Outputs]]:
        evaluated: list[list[Outputs]] = self.link("frozen_copy", self.key, "evaluate", groups)
        return evaluated

    def save(self, folder: Path) -> None:
        self.link("frozen_copy", self.key, "save", folder.absolute())

    def load(self, folder: Path) -> None:
        self.link("frozen_copy", self.key, "load", folder.absolute())


class RemoteEngine(BatchEngine):
    """Requests and answers travel as ids; caches stay with the model, for as long as the histories
    of its answers exist here. Nothing is streamed: a request's listener receives nothing."""

    def __init__(self, link: Link, number: int, versions: Mapping[str, int | None]) -> None:
        self.link, self.number = link, number
        self._versions = dict(versions)
        self._kept: WeakKeyDictionary[TokenHistory, RemoteHandle] = WeakKeyDictionary()

    @property
    def place(self) -> Hashable:
        return id(self.link)

    def generate(self, requests: Sequence[TokenRequest]) -> list[list[TokenAnswer]]:
        sent: list[SentRequest] = []
        for request in requests:
            kept = None if request.continues is None else self._kept.get(request.continues)
            bare = replace(request, continues=None, listener=None)
            sent.append((bare, None if kept is None else kept.number))
        answered: list[list[SentAnswer]] = self.link("generate", self.number, sent)
        for group in answered:
            for answer, number in group:
                self._kept[answer.history] = RemoteHandle(self.link, number)
        return [[answer for answer, _ in group] for group in answered]

    def sync(self) -> None:
        self._versions = self.link("sync", self.number)

    def version(self, agent: str) -> int | None:
        return self._versions[agent]
