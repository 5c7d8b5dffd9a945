"""The worker that the examples share: an episode's program against URLs that are given."""

from __future__ import annotations

import asyncio
import runpy
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

WORKER = Path(__file__).parents[3] / "examples" / "gateway" / "worker.py"


def test_held_out_items_are_played_in_one_event_loop(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A client that all episodes share belongs to the loop of its first request."""
    loops: list[asyncio.AbstractEventLoop] = []

    async def play(item: str, endpoints: Mapping[str, str]) -> str:
        loops.append(asyncio.get_running_loop())
        return item + endpoints["one"]

    def grade(item: str, result: str) -> float:
        return {"a": 1.0, "b": 0.5}[item] * (result == f"{item}URL")

    monkeypatch.setattr(sys, "argv", ["program.py", '{"one": "URL"}'])
    runpy.run_path(str(WORKER))["main"](play, ["a", "b"], grade)
    assert capsys.readouterr().out == "0.750 on 2 held-out items\n"
    assert loops[0] is loops[1]
