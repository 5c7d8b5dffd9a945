"""The worker that the examples share: an episode's program against URLs that are given."""

from __future__ import annotations

import asyncio
import json
import runpy
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

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


class Gateway:
    """A gateway that offers two episodes, and then refuses the worker."""

    def __init__(self, url: str, *, keeps: bool) -> None:
        self.url, self.keeps = url, keeps
        self.offers, self.connections = 0, 0
        self.ends: list[Any] = []
        self.both_ended = threading.Event()

    def answer(self, path: str, body: Any) -> tuple[int, Any]:
        """The status and the content of one answer."""
        if path == "/end":
            self.ends.append(body)
            if len(self.ends) == 2:
                self.both_ended.set()
            return 204, None
        self.offers += 1
        if self.offers < 3:
            return 200, {"item": self.offers, "endpoints": {}, "end": f"{self.url}/end"}
        self.both_ended.wait(30)
        return 404, {"error": {"message": "no such path"}}


@contextmanager
def served(*, keeps: bool) -> Iterator[Gateway]:
    """A gateway on a port; unless it `keeps` connections, it closes each after an answer."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            gateway.connections += 1

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            status, content = gateway.answer(self.path, body)
            text = b"" if content is None else json.dumps(content).encode()
            self.send_response(status)
            if text:
                self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)
            self.close_connection = not gateway.keeps  # without a word, as after a timeout

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads, server.block_on_close = True, False
        gateway = Gateway(f"http://127.0.0.1:{server.server_address[1]}", keeps=keeps)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield gateway
        server.shutdown()


async def half(item: int, endpoints: Mapping[str, str]) -> float:
    """A play that cannot halve 2."""
    return 1 / (item - 2) / 2


def run(gateway: Gateway) -> None:
    """Works until the gateway refuses the worker."""
    with pytest.raises(RuntimeError, match=r"/next was answered with 404: .*no such path"):
        asyncio.run(runpy.run_path(str(WORKER))["work"](half, f"{gateway.url}/next"))


ENDS = [{"result": -0.5}, {"failure": "ZeroDivisionError: division by zero"}]


def test_all_episodes_are_taken_and_ended_on_two_connections() -> None:
    with served(keeps=True) as gateway:
        run(gateway)
    assert (gateway.ends, gateway.connections) == (ENDS, 2)


def test_a_connection_that_the_gateway_has_closed_is_opened_again() -> None:
    with served(keeps=False) as gateway:
        run(gateway)
    assert (gateway.ends, gateway.connections) == (ENDS, 5)
