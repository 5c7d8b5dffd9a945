"""The link to a generation server, against a server whose answers a test writes."""

from __future__ import annotations

import gzip
import json
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from quiet_server import QuietServer

from colearn.engines import server_link
from colearn.engines.server_link import ServerLink, ServerRefused
from colearn.errors import ServerLost

Reply = Callable[[Any], tuple[int, str | bytes]]
"""The body that was sent to status and text."""


class Server:
    """Answers by path; notes the paths, the tokens, and how many answers are under way at once."""

    def __init__(self) -> None:
        self.replies: dict[str, Reply] = {"/health": lambda _: (200, "")}
        self.asked: list[str] = []
        self.tokens: list[str | None] = []
        self.encodings: list[str | None] = []
        self.headers: dict[str, str] = {}
        """Further headers of every answer."""
        self.open = self.busy = self.most = 0
        self.lock, self.over = threading.Lock(), threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: Any) -> None:
                pass

            def setup(self) -> None:
                super().setup()
                with server.lock:
                    server.open += 1

            def finish(self) -> None:
                super().finish()
                with server.lock:
                    server.open -= 1

            def do_GET(self) -> None:
                with server.lock:
                    server.asked.append(self.path)
                    server.tokens.append(self.headers.get("authorization"))
                    server.encodings.append(self.headers.get("accept-encoding"))
                    server.busy += 1
                    server.most = max(server.most, server.busy)
                content = self.rfile.read(int(self.headers.get("content-length") or 0))
                status, text = server.replies[self.path](json.loads(content or b"null"))
                with server.lock:
                    server.busy -= 1
                raw = text if isinstance(text, bytes) else text.encode()
                self.send_response(status)
                for name, value in server.headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            do_POST = do_GET

        self.http = QuietServer(Handler)
        threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True).start()
        self.url = self.http.url

    def late(self, seconds: float, text: str = "null", status: int = 200) -> Reply:
        def reply(_: Any) -> tuple[int, str]:
            self.over.wait(seconds)
            return status, text

        return reply


@pytest.fixture
def server() -> Iterator[Server]:
    one = Server()
    yield one
    one.over.set()
    one.http.shutdown()
    one.http.server_close()


@pytest.fixture
def link(server: Server) -> Iterator[ServerLink]:
    one = ServerLink(server.url, timeout=600.0)
    yield one
    one.close()


def refusal(link: ServerLink, server: Server, status: int, text: str) -> str:
    server.replies["/x"] = lambda _: (status, text)
    with pytest.raises(ServerRefused) as refused:
        link.call("GET", "/x")
    assert refused.value.status == status
    return refused.value.message


def test_a_token_is_sent_with_every_request(server: Server) -> None:
    link = ServerLink(server.url, timeout=60.0, token="key")
    link.call("GET", "/health")
    link.close()
    assert server.tokens == ["Bearer key"]


def test_text_that_is_no_json_is_none(link: ServerLink, server: Server) -> None:
    server.replies["/x"] = lambda _: (200, "ready")
    assert link.call("GET", "/x") is None
    assert link.wait(link.begin("/x", [{}])) == [None]


@pytest.mark.parametrize("packed", [gzip.compress(b" " * 10**8), b"no gzip"], ids=["huge", "bad"])
def test_a_compressed_answer_is_a_lost_server_and_never_unpacked(
    link: ServerLink, server: Server, packed: bytes
) -> None:
    server.headers["content-encoding"] = "gzip"
    server.replies["/x"] = lambda _: (200, packed)
    tracemalloc.start()
    with pytest.raises(ServerLost, match="answer that is compressed, but no compression"):
        link.call("GET", "/x")
    assert tracemalloc.get_traced_memory()[1] < 10**7
    tracemalloc.stop()
    assert server.encodings == ["identity"]


def test_an_answer_longer_than_the_limit_is_a_lost_server(
    link: ServerLink, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_link, "LONGEST_ANSWER", 1000)
    for number, status in ((1000, 200), (1001, 200), (1001, 500)):
        server.replies["/x"] = lambda _, number=number, status=status: (status, "1" * number)
        if number == 1000:
            link.call("GET", "/x")
            continue
        with pytest.raises(ServerLost, match="an answer that is longer than 1000 bytes"):
            link.call("GET", "/x")


def test_a_call_has_its_own_time_or_the_links(server: Server) -> None:
    server.replies["/x"] = server.late(20)
    link = ServerLink(server.url, timeout=0.2)
    with pytest.raises(ServerLost, match=r"gave no answer within 0\.1 s; .* --resume"):
        link.call("GET", "/x", timeout=0.1)
    with pytest.raises(ServerLost, match=r"gave no answer within 0\.2 s"):
        link.wait(link.begin("/x", [{}]))
    link.close()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"error": {"message": "no\\nroom", "code": 1}}', "no room"),
        ('{"error": {"code": 1}}', "{'code': 1}"),
        ('{"error": "no room"}', "no room"),
        ('{"detail": "no room"}', "no room"),
        ('{"other": 1}', '{"other": 1}'),
        ("<p>\n no room</p>", "<p> no room</p>"),
        ("\x1b[2Jno\troom\x07", "?[2Jno room?"),
        ("a" * 300, "a" * 300),
        ("a" * 301, "a" * 300 + " ..."),
    ],
)
def test_the_servers_reason_is_one_short_line(
    link: ServerLink, server: Server, text: str, message: str
) -> None:
    assert refusal(link, server, 302, text) == message


def test_answers_come_in_the_order_of_the_requests(link: ServerLink, server: Server) -> None:
    def later_first(body: Any) -> tuple[int, str]:
        time.sleep(0.3 - 0.1 * body["number"])
        return 200, str(body["number"])

    server.replies["/x"] = later_first
    assert link.wait(link.begin("/x", [{"number": number} for number in range(3)])) == [0, 1, 2]


def test_no_more_requests_are_under_way_than_may_be(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over all calls together: each request of a rollout is a call of its own."""
    monkeypatch.setattr(server_link, "PARALLEL", 2)
    link, two = ServerLink(server.url, timeout=600.0), threading.Barrier(2)

    def together(_: Any) -> tuple[int, str]:
        two.wait(600)
        server.over.wait(0.1)  # in which a third could come
        return 200, "null"

    server.replies["/x"] = together
    for begun in [link.begin("/x", [{}] * 3) for _ in range(2)]:
        link.wait(begun)
    link.close()
    assert server.most == 2


def test_the_first_failure_ends_the_other_requests(link: ServerLink, server: Server) -> None:
    def one_fails(body: Any) -> tuple[int, str]:
        if not body["fails"]:
            assert server.over.wait(), "the end of the test"
        return 500, "no room"

    server.replies["/x"] = one_fails
    with pytest.raises(ServerRefused, match="status 500: no room"):
        link.wait(link.begin("/x", [{"fails": False}, {"fails": True}, {"fails": False}]))


def test_a_server_that_says_that_it_is_not_healthy_is_lost(
    link: ServerLink, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_link, "PULSE", 0.2)
    monkeypatch.setattr(server_link, "_MISSED", 10_000)  # one of them is answered in time
    server.replies |= {"/x": server.late(20), "/health": lambda _: (503, "engine dead")}
    with pytest.raises(
        ServerLost, match=r"is not healthy \(status 503: engine dead\); .* --resume"
    ):
        link.wait(link.begin("/x", [{}]))


def test_a_server_that_hangs_is_found_by_its_health(
    link: ServerLink, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_link, "PULSE", 0.1)
    server.replies |= {"/x": server.late(20), "/health": server.late(20)}
    with pytest.raises(ServerLost, match=r"has not answered 2 health checks of 0\.1 s; .*--resume"):
        link.wait(link.begin("/x", [{}]))


def test_health_checks_that_are_missed_now_and_then_are_no_loss(
    link: ServerLink, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every second one: never two in a row."""
    monkeypatch.setattr(server_link, "PULSE", 0.01)
    checks: list[int] = []
    call = link._call

    async def every_other(method: str, path: str, body: Any, timeout: float) -> Any:
        if path != "/health":
            return await call(method, path, body, timeout)
        checks.append(len(checks))
        if len(checks) % 2:
            raise ServerLost("gave no answer")

    monkeypatch.setattr(link, "_call", every_other)

    def answered(_: Any) -> tuple[int, str]:
        while len(checks) < 6 and not server.over.wait(0.05):
            pass
        return 200, '"fine"'

    server.replies["/x"] = answered
    assert link.wait(link.begin("/x", [{}])) == ["fine"]


def test_a_closed_link_leaves_no_connection_and_no_thread(server: Server) -> None:
    before = set(threading.enumerate())
    link = ServerLink(server.url, timeout=60.0)
    link.call("GET", "/health")
    thread = link._thread
    assert thread not in before
    link.close()
    link.close()
    assert not thread.is_alive()
    end = time.monotonic() + 600
    while server.open and time.monotonic() < end:
        time.sleep(0.02)
    assert server.open == 0
