"""A kind of host of another package, in one file: its models learn in the opposite order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from colearn.contract import HostKind, NetworkKey
from colearn.contract.host import Given
from colearn.training.hosts.local_team import local_team
from colearn.training.team import Team

CALLED: list[list[str]] = []
"""The names of the models of every round of calls, as they were made."""


@dataclass(frozen=True, kw_only=True)
class Backward(HostKind):
    def build(self, run: Any, tokenizers: Any) -> Team:
        return replace(local_team(run, tokenizers), together=backward)


def backward(calls: Mapping[NetworkKey, Callable[[], Given]]) -> dict[NetworkKey, Given]:
    CALLED.append([str(key) for key in reversed(calls)])
    results = {key: calls[key]() for key in reversed(calls)}
    return {key: results[key] for key in calls}
