"""SIGTERM: nothing new, what runs is finished within the grace, exit 0."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import httpx
import pytest
from exported import Running, export_tiny, serving

BODY: dict[str, Any] = {"messages": [{"role": "user", "content": "hello"}], "temperature": 0}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of an agent that never ends by itself."""
    return export_tiny(tmp_path_factory.mktemp("shutdown") / "ada", end_scale=0, max_tokens=900)


def begin(server: Running, client: httpx.Client) -> Any:
    url = server.url + "/v1/chat/completions"
    return client.stream("POST", url, json={**BODY, "stream": True}, timeout=600)


@pytest.mark.slow
def test_a_running_answer_is_finished_and_nothing_new_begins(folder: Path) -> None:
    with serving(folder) as server, httpx.Client() as client:
        with begin(server, client) as answer:
            lines = answer.iter_lines()
            next(lines)
            os.kill(server.process.pid, signal.SIGTERM)
            while server.get("/health").status_code != 503:
                pass
            refused = httpx.post(server.url + "/v1/chat/completions", json=BODY)
            assert refused.status_code == 503
            *_, last = [line for line in lines if line]
        assert last == "data: [DONE]"
        assert server.process.wait(600) == 0


@pytest.mark.slow
def test_the_grace_ends(folder: Path) -> None:
    with serving(folder, "--grace", "0") as server, httpx.Client() as client:
        with begin(server, client) as answer:
            lines = answer.iter_lines()
            next(lines)
            os.kill(server.process.pid, signal.SIGTERM)
            *_, last = [line for line in lines if line]
        assert "shutting down" in last
        assert server.process.wait(600) == 0
