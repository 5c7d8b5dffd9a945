"""SIGTERM: nothing new, what runs is finished within the grace."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from exported import Threaded, export_tiny, serving_here

from colearn.engines.decoder import Decoder

BODY: dict[str, Any] = {"messages": [{"role": "user", "content": "hello"}], "temperature": 0}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of an agent that never ends by itself."""
    return export_tiny(tmp_path_factory.mktemp("shutdown") / "ada", end_scale=0, max_tokens=900)


def begin(server: Threaded, client: httpx.Client, **fields: Any) -> Any:
    url = server.url + "/v1/chat/completions"
    return client.stream("POST", url, json={**BODY, "stream": True, **fields}, timeout=600)


def test_a_running_answer_is_finished_and_nothing_new_begins(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go, step = threading.Event(), Decoder.step

    def waiting(engine: Decoder) -> Any:
        go.wait(600)
        return step(engine)

    monkeypatch.setattr(Decoder, "step", waiting)
    with serving_here(folder) as server, httpx.Client() as client, ExitStack() as stack:
        stack.callback(go.set)
        with begin(server, client, max_tokens=9) as answer:
            lines = answer.iter_lines()
            next(lines)
            server.asked_to_end()
            end = time.monotonic() + 60
            while server.get("/health").status_code != 503:
                assert time.monotonic() < end
            refused = httpx.post(server.url + "/v1/chat/completions", json=BODY)
            assert refused.status_code == 503
            go.set()
            *_, last = [line for line in lines if line]
        assert last == "data: [DONE]"
        server.thread.join()


def test_the_grace_ends(folder: Path) -> None:
    with serving_here(folder, grace=0.0) as server, httpx.Client() as client:
        with begin(server, client) as answer:
            lines = answer.iter_lines()
            next(lines)
            server.asked_to_end()
            *_, last = [line for line in lines if line]
        assert "shutting down" in last
        server.thread.join()
