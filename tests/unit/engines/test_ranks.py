"""Processes that share servers: how long they wait for the first one."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import torch

from colearn.engines.ranks import Ranks


def test_processes_wait_a_day_for_what_the_first_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server's start and a transfer have limits of their own; gloo's default is 30 minutes."""
    groups: list[dict[str, Any]] = []
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 2)
    monkeypatch.setattr(torch.distributed, "new_group", lambda **given: groups.append(given))
    Ranks()
    assert groups == [{"backend": "gloo", "timeout": timedelta(days=1)}]
