"""Processes that share servers: how long they wait for the first one."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import torch

from colearn.engines.ranks import Ranks


@pytest.fixture
def groups(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The groups that are made, by the first of two processes."""
    made: list[dict[str, Any]] = []
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 2)
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: 0)
    monkeypatch.setattr(torch.distributed, "new_group", lambda **given: made.append(given) or given)
    return made


def test_processes_wait_a_day_for_what_the_first_one_does(
    groups: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server's start and a transfer have limits of their own; gloo's default is 30 minutes."""
    waited: list[Any] = []

    def broadcast(outcome: list[Any], src: int, group: Any = None) -> None:
        waited.append(group)

    monkeypatch.setattr(torch.distributed, "broadcast_object_list", broadcast)
    assert Ranks().by_first(lambda: 5) == 5
    assert groups == waited == [{"backend": "gloo", "timeout": timedelta(days=1)}]


def test_a_process_alone_waits_for_none(
    groups: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 1)
    assert Ranks().by_first(lambda: 5) == 5
    assert groups == []
