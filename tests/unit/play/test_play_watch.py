"""What the page of a play is served from: events in order, for this machine only."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient

from colearn.deploy.play.person import Person
from colearn.deploy.play.watch import FILES, LIMITS, Watch, watch_app
from colearn.errors import ConfigError


@pytest.fixture
def watch() -> Iterator[Watch]:
    made = Watch("notes", 0)
    yield made
    made.socket.close()


@pytest.fixture
def get(watch: Watch) -> Callable[..., httpx.Response]:
    client = TestClient(watch_app(watch), base_url="http://127.0.0.1")
    return lambda path, **headers: client.get(path, headers=headers)


def events(response: httpx.Response) -> list[Any]:
    lines = [line for line in response.text.splitlines() if line.startswith("data: ")]
    return [json.loads(line[6:]) for line in lines]


def test_a_late_reader_gets_everything_and_then_the_end(
    watch: Watch, get: Callable[..., httpx.Response]
) -> None:
    watch.tell({"kind": "planned"})
    watch.tell({"kind": "finished"})
    watch.end()
    response = get("/events")
    assert [event.get("kind") for event in events(response)] == [
        "titled",
        "planned",
        "finished",
        None,
    ]
    assert response.headers["content-type"].startswith("text/event-stream")
    assert response.text.endswith("event: over\ndata: {}\n\n")


def test_a_reader_that_comes_back_gets_what_it_has_not_seen(
    watch: Watch, get: Callable[..., httpx.Response]
) -> None:
    for number in range(3):
        watch.tell({"kind": "started", "episode": number})
    watch.end()
    received = events(get("/events", **{"Last-Event-ID": "2"}))
    assert received == [{"kind": "started", "episode": 2}, {}]


def test_a_reader_hears_of_an_event_as_it_happens(watch: Watch) -> None:
    async def follow() -> list[str]:
        heard: list[str] = []

        async def listen() -> None:
            async for part in watch.follow(1):
                heard.append(part)

        listening = asyncio.create_task(listen())
        await asyncio.sleep(0)
        for kind in ("started", "ended"):
            watch.tell({"kind": kind})
            await asyncio.sleep(0.01)
            assert kind in heard[-1]
        watch.end()
        await listening
        return heard

    assert len(asyncio.run(follow())) == 4  # the first sets the time to come back after


def test_an_event_of_several_lines_is_one_event(
    watch: Watch, get: Callable[..., httpx.Response]
) -> None:
    text = "a\n\ndata: {}\r\nid: 9\n\n\u2028"
    watch.tell({"kind": "acted", "text": text})
    watch.end()
    assert events(get("/events"))[1] == {"kind": "acted", "text": text}


@pytest.mark.parametrize("path", ["/", *(f"/page/{name}" for name in FILES)])
def test_every_file_forbids_what_does_not_come_from_here(
    get: Callable[..., httpx.Response], path: str
) -> None:
    response = get(path)
    assert response.status_code == 200
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy


@pytest.mark.parametrize("path", ["/page/index.html", "/page/../watch.py", "/page/%2e%2e%2fapp.py"])
def test_no_other_file_is_served(get: Callable[..., httpx.Response], path: str) -> None:
    assert get(path).status_code == 404


def test_a_page_from_elsewhere_cannot_read_along(get: Callable[..., httpx.Response]) -> None:
    assert get("/events", Host="evil.example").status_code == 400


def test_a_port_that_is_taken_is_an_error_with_the_remedy(watch: Watch) -> None:
    port = watch.socket.getsockname()[1]
    watch.socket.listen()
    with pytest.raises(ConfigError, match=f"--watch-port: {port}: .*; give another one, or 0"):
        Watch("notes", port)


@pytest.mark.parametrize("last", ["9" * 5000, "99", "-1", "1e3", "two", "\u00b2", ""])
def test_a_last_event_that_is_none_here_begins_with_the_first(
    watch: Watch, get: Callable[..., httpx.Response], last: str
) -> None:
    watch.end()
    response = get("/events", **{"Last-Event-ID": last.encode()})
    assert events(response)[0] == {"kind": "titled", "title": "notes"}


@pytest.fixture
def client() -> Iterator[TestClient]:
    made = Watch("notes", 0, {"ann": Person()})
    yield TestClient(watch_app(made), base_url="http://127.0.0.1", raise_server_exceptions=False)
    made.socket.close()


def test_what_a_page_says_in_another_type_is_refused_before_it_is_read(client: TestClient) -> None:
    async def sent(content_type: str) -> tuple[int, int]:
        status, received = [], 0

        async def receive() -> dict[str, Any]:
            nonlocal received
            received += 1
            return {"type": "http.request", "body": b"x" * 65536, "more_body": True}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                status.append(message["status"])

        headers = [(b"host", b"127.0.0.1"), (b"content-type", content_type.encode())]
        scope = {
            "type": "http",
            "method": "POST",
            "path": "/say",
            "raw_path": b"/say",
            "query_string": b"",
            "headers": headers,
            "http_version": "1.1",
            "scheme": "http",
            "server": ("127.0.0.1", 80),
            "client": ("127.0.0.1", 1),
        }
        await client.app(scope, receive, send)
        return status[0], received

    assert asyncio.run(sent("text/plain")) == (415, 0)
    status, received = asyncio.run(sent("application/json"))
    assert status == 413
    assert received <= LIMITS.max_body // 65536 + 2, "no more is held than an answer may have"


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (b"[" * 100_000, 400),
        (b'{"agent": "ann", "episode": 0, "text": "\\ud800"}', 400),
        (b'{"agent": "ann", "episode": ' + b"9" * 400 + b', "text": ""}', 422),
        (b'{"agent": "ann", "episode": true, "text": ""}', 422),
        (b'{"agent": "ann", "episode": 0}', 422),
        (b'{"agent": "ann", "episode": 0, "text": "' + b"x" * (2**20 + 1) + b'"}', 422),
        (b'{"agent": "ann", "episode": 0, "text": "yes"}', 409),
        (b'{"agent": "eve", "episode": 0, "text": "yes"}', 409),
    ],
    ids=range(8),
)
def test_what_is_no_answer_of_a_person_is_refused(
    client: TestClient, said: bytes, status: int
) -> None:
    headers = {"content-type": "application/json; charset=utf-8"}
    assert client.post("/say", content=said, headers=headers).status_code == status
