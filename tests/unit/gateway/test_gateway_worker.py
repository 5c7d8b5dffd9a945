"""The worker that the examples share: an episode's program against URLs that are given."""

from __future__ import annotations

import asyncio
import json
import runpy
import socket
import struct
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.client import BadStatusLine, RemoteDisconnected
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
    """A gateway that offers two episodes, so many at once, and then refuses the worker."""

    def __init__(self, url: str, *, keeps: bool, at_once: int) -> None:
        self.url, self.keeps = url, keeps
        self.items = [[1], [2]] if at_once == 1 else [[1, 2]]
        self.connections = 0
        self.ends: list[Any] = []
        self.both_ended = threading.Event()

    def answer(self, path: str, body: Any) -> tuple[int, Any]:
        """The status and the content of one answer."""
        if path == "/end":
            self.ends.append(body)
            if len(self.ends) == 2:
                self.both_ended.set()
            return 204, None
        assert body == {"most": 64}
        if self.items:
            end = f"{self.url}/end"
            offered = [{"item": item, "endpoints": {}, "end": end} for item in self.items.pop(0)]
            return 200, {"episodes": offered}
        self.both_ended.wait(600)
        return 404, {"error": {"message": "no such path"}}


@contextmanager
def served(*, keeps: bool, at_once: int = 1) -> Iterator[Gateway]:
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
        gateway = Gateway(
            f"http://127.0.0.1:{server.server_address[1]}", keeps=keeps, at_once=at_once
        )
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
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


@pytest.mark.parametrize("at_once", [1, 2])
def test_all_episodes_are_taken_and_ended_on_two_connections(at_once: int) -> None:
    with served(keeps=True, at_once=at_once) as gateway:
        run(gateway)
    assert (gateway.ends, gateway.connections) == (ENDS, 2)


def test_a_connection_that_the_gateway_has_closed_is_opened_again() -> None:
    with served(keeps=False) as gateway:
        run(gateway)
    assert (gateway.ends, gateway.connections) == (ENDS, 5)


Served = Callable[[socket.socket], None]
"""What a gateway does with one connection."""


@contextmanager
def scripted(*connections: Served) -> Iterator[Any]:
    """A worker's connection to a gateway that treats its connections in these ways, one by one."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(600)

        def serve() -> None:
            for treat in connections:
                try:
                    accepted, _ = listening.accept()
                except OSError:  # the test has ended
                    return
                with accepted:
                    treat(accepted)

        serving = threading.Thread(target=serve)
        serving.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        yield runpy.run_path(str(WORKER))["_Connection"](url)
        listening.shutdown(socket.SHUT_RDWR)
        serving.join(600)


def answers(text: bytes) -> Served:
    """Answers one request; the connection is kept until the client closes it."""

    def treat(accepted: socket.socket) -> None:
        read(accepted)
        accepted.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(text), text))
        accepted.recv(1)

    return treat


def read(accepted: socket.socket) -> None:
    """Reads one request, whose body is {}."""
    text = b""
    while not text.endswith(b"\r\n\r\n{}"):
        text += accepted.recv(4096)


def silent(accepted: socket.socket) -> None:
    """Reads, and answers nothing until the client closes."""
    read(accepted)
    accepted.recv(1)


def garbled(accepted: socket.socket) -> None:
    """Reads, and answers what is no HTTP."""
    read(accepted)
    accepted.sendall(b"hello\r\n\r\n")
    accepted.recv(1)


@pytest.mark.parametrize(("fails", "error"), [(silent, TimeoutError), (garbled, BadStatusLine)])
def test_a_request_that_fails_leaves_the_next_one_a_new_connection(
    fails: Served, error: type[Exception]
) -> None:
    with scripted(fails, answers(b"7")) as connection:
        connection._connection.timeout = 0.5 if fails is silent else 600
        with pytest.raises(error):
            connection._post("/end", {})
        connection._connection.timeout = 600
        assert connection._post("/end", {}) == 7
        connection._connection.close()


def test_a_request_that_a_new_connection_has_carried_is_not_repeated() -> None:
    with scripted(read, answers(b"7")) as connection:
        with pytest.raises(RemoteDisconnected):
            connection._post("/end", {})
        connection._connection.close()


def test_a_request_whose_kept_connection_is_reset_before_the_answer_is_not_repeated() -> None:
    def resets(accepted: socket.socket) -> None:
        read(accepted)
        accepted.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n7")
        read(accepted)
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    with scripted(resets, answers(b"8")) as connection:
        assert connection._post("/end", {}) == 7
        with pytest.raises(ConnectionResetError) as raised:
            connection._post("/end", {})
        assert not isinstance(raised.value, RemoteDisconnected)
        connection._connection.close()
