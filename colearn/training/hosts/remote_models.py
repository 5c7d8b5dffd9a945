"""Proxies for learners, frozen copies and engines whose models are in a `ModelWorker`."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import torch

from colearn.contract import (
    Accumulated,
    BatchEngine,
    FrozenCopy,
    Learner,
    NetworkKey,
    Objective,
    TokenAnswer,
    TokenHistory,
    TokenRequest,
    WeightCopy,
    WeightUpdate,
)
from colearn.contract.rows import Outputs, Row
from colearn.contract.timeline import updates
from colearn.errors import CheckpointError
from colearn.models.network import Network

from .links import RemoteHandle, WorkerHandle, WorkerLink
from .model_worker import SentAnswer, SentRequest


class RemoteLearner(Learner):
    """Proxy of a learner in a worker. Sends rows and objectives to the worker and receives numbers;
    weights are transferred only on request. `here`: the copy of the network in this process, if
    there is one."""

    def __init__(self, key: NetworkKey, link: WorkerLink, size: int, here: Network | None) -> None:
        self.key, self.link, self.name = key, link, str(key)
        self.size, self.steps, self._here = size, 0, here

    def _do(self, method: str, *args: Any) -> Any:
        result, self.steps = self.link("learner", self.key, method, *args)
        return result

    @updates
    def evaluate(self, rows: Sequence[Row], *, reference: bool = False) -> list[Outputs]:
        evaluated: list[Outputs] = self.link("evaluate", self.key, rows, reference)
        return evaluated

    @updates
    def accumulate(self, rows: Sequence[Row], objective: Objective) -> Accumulated:
        result: Accumulated = self.link("accumulate", self.key, rows, objective)
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
        """Save the learner in the worker's process. Errors: CheckpointError if the folder that the
        worker writes does not exist on this machine."""
        folder = folder.absolute()
        self._do("save", folder)
        if not folder.is_dir():
            raise CheckpointError(
                f"run.host: the worker of {self.name} has written a checkpoint that is not here, "
                f"{folder}; give --out a folder on a file system that all nodes share"
            )

    def load(self, folder: Path) -> None:
        self._do("load", folder.absolute())

    def copy(self) -> RemoteWeightCopy:
        numbers = self.link.each("copy", [(self.key,)] * len(self.link.processes))
        return RemoteWeightCopy(self, WorkerHandle(self.link, numbers))

    def publish(self) -> WeightUpdate:
        update: WeightUpdate = self._do("publish")
        return update

    def weights(self) -> dict[str, Any]:
        """A copy of the trained weights, by name."""
        weights: dict[str, Any] = self._do("weights")
        return weights

    @torch.no_grad()
    def fetch(self) -> None:
        if self._here is None:
            return
        weights = self._here.trained()
        for name, weight in self.weights().items():
            weights[name].copy_(weight)
        self._here.base.revision += 1


class RemoteWeightCopy(WeightCopy):
    """Copy of a learner's weights, stored in the learner's worker."""

    def __init__(self, learner: RemoteLearner, handle: WorkerHandle) -> None:
        self._learner, self._kept, self.steps = learner, handle, learner.steps

    def put(self) -> None:
        self._do("put")
        self._learner.steps = self.steps

    def save(self, folder: Path) -> None:
        process, number = self._learner.link.processes[0], self._kept.numbers[0]
        process("weight_copy", number, "save", folder.absolute())

    def load(self, folder: Path, steps: int) -> None:
        self._do("load", folder.absolute(), steps)
        self.steps = steps

    def _do(self, method: str, *args: Any) -> None:
        calls = [(number, method, *args) for number in self._kept.numbers]
        self._learner.link.each("weight_copy", calls)


class RemoteCopy(FrozenCopy):
    """Proxy of a frozen copy in a worker; the weights are copied from the learner inside the
    worker."""

    def __init__(self, key: NetworkKey, link: WorkerLink) -> None:
        self.key, self.link = key, link

    def copy_weights(self) -> None:
        self.link("frozen_copy", self.key, "copy_weights")

    def evaluate(self, rows: Sequence[Row]) -> list[Outputs]:
        evaluated: list[Outputs] = self.link("frozen_copy", self.key, "evaluate", rows)
        return evaluated

    def save(self, folder: Path) -> None:
        self.link("frozen_copy", self.key, "save", folder.absolute())

    def load(self, folder: Path) -> None:
        self.link("frozen_copy", self.key, "load", folder.absolute())


class RemoteEngine(BatchEngine):
    """Proxy of an engine in a worker. Requests and answers are sent as token ids. KV caches stay in
    the worker as long as the histories of the answers exist in this process. A batch is divided
    among the processes of a worker. A request is sent to the process that holds the KV cache of the
    request's history. If no process holds this cache, the request is sent to the process with the
    fewest rows."""

    def __init__(self, link: WorkerLink, number: int, versions: Mapping[str, int | None]) -> None:
        self.link, self.number = link, number
        self._versions = dict(versions)
        self._kept: WeakKeyDictionary[TokenHistory, RemoteHandle] = WeakKeyDictionary()

    @property
    def place(self) -> Hashable:
        return id(self.link)

    def generate(self, requests: Sequence[TokenRequest]) -> list[list[TokenAnswer]]:
        processes = self.link.processes
        by_process: list[list[SentRequest]] = [[] for _ in processes]
        rows = [0] * len(processes)
        place: list[tuple[int, int]] = []
        for request in requests:
            handle = None if request.continues is None else self._kept.get(request.continues)
            at = rows.index(min(rows)) if handle is None else processes.index(handle.link)
            rows[at] += len(request.seeds)
            place.append((at, len(by_process[at])))
            bare = replace(request, continues=None)
            by_process[at].append((bare, None if handle is None else handle.number))
        answered: list[list[list[SentAnswer]]] = self.link.each(
            "generate", [(self.number, process_requests) for process_requests in by_process]
        )
        answers = []
        for at, number in place:
            for answer, kept_number in answered[at][number]:
                self._kept[answer.history] = RemoteHandle(processes[at], kept_number)
            answers.append([answer for answer, _ in answered[at][number]])
        return answers

    def sync(self) -> None:
        self._versions = self.link("sync", self.number)

    def rest(self) -> None:
        self.link("rest", self.number)

    def version(self, agent: str) -> int | None:
        return self._versions[agent]
