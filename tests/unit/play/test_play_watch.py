"""What the page of a play is served from: events in order, for this machine only."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient

from colearn.errors import ConfigError
from colearn.play.watch import FILES, Watch, watch_app


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
    with pytest.raises(ConfigError, match=f"--watch-port {port}: .*; take another or 0"):
        Watch("notes", port)
