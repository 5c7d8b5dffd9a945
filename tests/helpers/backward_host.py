"""A kind of host of another package, in one file: its models learn in the opposite order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from colearn.contract import HostKind, ModelHost, NetworkKey
from colearn.contract.host import Given
from colearn.experiment.hosts.local import LocalHost

CALLED: list[list[str]] = []
"""The names of the models of every round of calls, as they were made."""


@dataclass(frozen=True, kw_only=True)
class Backward(HostKind):
    def build(self, run: Any, tokenizers: Any) -> ModelHost:
        return BackwardHost(run, tokenizers)


class BackwardHost(LocalHost):
    def together(self, calls: Mapping[NetworkKey, Callable[[], Given]]) -> dict[NetworkKey, Given]:
        CALLED.append([str(key) for key in reversed(calls)])
        results = {key: calls[key]() for key in reversed(calls)}
        return {key: results[key] for key in calls}
