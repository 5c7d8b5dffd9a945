"""A kind of host whose workers are in this process, and receive and return pickled copies only."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from colearn.contract import HostKind
from colearn.errors import ModelLost
from colearn.training.hosts.links import Call
from colearn.training.hosts.model_worker import ModelWorker
from colearn.training.hosts.remote_team import remote_team
from colearn.training.team import Team

WORKERS: list[tuple[str, ModelWorker]] = []
"""The models and the worker of every group of the last host."""
LOST: set[str] = set()
"""Names of groups whose worker has ended."""


class PickledWorkers:
    def start(self, groups: Sequence[str]) -> list[list[Call]]:
        WORKERS[:] = [(group, ModelWorker()) for group in groups]
        return [[_call(group, worker)] for group, worker in WORKERS]

    def close(self) -> None:
        LOST.clear()


def _call(group: str, worker: ModelWorker) -> Call:
    def call(method: str, *args: Any) -> Any:
        if group in LOST:
            raise ModelLost(f"the worker of {group} has ended")
        copies = pickle.loads(pickle.dumps(args))
        with _TURN:
            return pickle.loads(pickle.dumps(getattr(worker, method)(*copies)))

    return call


_TURN = threading.Lock()
"""Held during a call: transformers loads one model of a process at a time."""


@dataclass(frozen=True, kw_only=True)
class Pickled(HostKind):
    def build(self, run: Any, tokenizers: Any) -> Team:
        return remote_team(run, tokenizers, PickledWorkers())
