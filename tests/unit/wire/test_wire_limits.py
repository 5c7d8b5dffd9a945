"""Rates and sizes of requests at their limits, and what a refusal is on the wire."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from starlette.requests import Request

from colearn.deploy.client.protocol import limits
from colearn.deploy.client.protocol.errors import ServeError
from colearn.deploy.client.protocol.events import event
from colearn.deploy.client.protocol.limits import RateLimiter, ServerLimits, read_body


def allowed(limiter: RateLimiter, seconds: float, client: str = "a") -> bool:
    try:
        limiter.check(client, seconds)
    except ServeError:
        return False
    return True


def count(limiter: RateLimiter, seconds: float, tries: int = 20) -> int:
    """How many of the tries of one moment are allowed."""
    return sum(allowed(limiter, seconds) for _ in range(tries))


def wait(limiter: RateLimiter, seconds: float) -> str:
    with pytest.raises(ServeError) as refused:
        limiter.check("a", seconds)
    return refused.value.headers["retry-after"]


def test_a_rate_of_zero_is_no_limit() -> None:
    assert count(RateLimiter(0), 0.0) == 20


@pytest.mark.parametrize(("rate", "burst"), [(3.0, 6), (0.5, 1), (0.1, 1)])
def test_a_burst_is_twice_the_rate_and_one_at_least(rate: float, burst: int) -> None:
    assert count(RateLimiter(rate), 0.0) == burst


def test_what_is_refused_costs_nothing_and_time_gives_the_rate() -> None:
    limiter = RateLimiter(3.0)
    assert [count(limiter, second) for second in (0.0, 1.0, 2.0)] == [6, 3, 3]


def test_idle_time_gives_no_more_than_a_burst() -> None:
    limiter = RateLimiter(3.0)
    count(limiter, 0.0)
    assert count(limiter, 1000.0) == 6


def test_the_wait_is_told_in_whole_seconds_rounded_up() -> None:
    limiter = RateLimiter(0.1)
    limiter.check("a", 0.0)
    assert [wait(limiter, seconds) for seconds in (0.0, 0.5, 1.0, 9.5)] == ["10", "10", "9", "1"]


def test_of_too_many_clients_the_one_that_asked_longest_ago_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "_CLIENTS", 2)
    limiter = RateLimiter(0.5)
    for client in ("a", "b", "c"):
        assert allowed(limiter, 0.0, client)
    assert [allowed(limiter, 0.0, client) for client in ("c", "b", "a")] == [False, False, True]


def body(parts: list[bytes], length: str | None = None, *, leaves: bool = False) -> bytes:
    """What is read of a body that comes in these parts, with a limit of 4 bytes."""
    messages: list[dict[str, Any]] = [
        {"type": "http.request", "body": part, "more_body": number < len(parts) or leaves}
        for number, part in enumerate(parts, 1)
    ]

    async def receive() -> dict[str, Any]:
        if messages:
            return messages.pop(0)
        if not leaves:
            await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    headers = [] if length is None else [(b"content-length", length.encode())]
    request = Request({"type": "http", "headers": headers}, receive)
    limits = ServerLimits(max_body=4, read_timeout=600.0 if parts or leaves else 0.2)
    return asyncio.run(read_body(request, limits))


def refused(*arguments: Any, **leaves: Any) -> tuple[int, str | None, dict[str, str]]:
    with pytest.raises(ServeError) as refusal:
        body(*arguments, **leaves)
    return refusal.value.status, refusal.value.code, refusal.value.headers


@pytest.mark.parametrize("length", [None, "4"])
def test_a_body_of_the_limit_is_read(length: str | None) -> None:
    assert body([b"ab", b"cd"], length) == b"abcd"


@pytest.mark.parametrize(("parts", "length"), [([b"ab", b"cde"], None), ([], "5")])
def test_a_body_beyond_the_limit_is_refused_and_ends_its_connection(
    parts: list[bytes], length: str | None
) -> None:
    assert refused(parts, length) == (413, "body_too_large", {"connection": "close"})


def test_a_body_that_does_not_come_is_refused_and_ends_its_connection() -> None:
    assert refused([]) == (408, "timeout", {"connection": "close"})


def test_a_client_that_leaves_before_its_body_has_come_is_told_apart() -> None:
    assert refused([b"a"], leaves=True) == (499, None, {})


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (403, "permission_error"),
        (404, "not_found_error"),
        (429, "rate_limit_error"),
        (499, "invalid_request_error"),
        (500, "server_error"),
        (503, "server_error"),
    ],
)
def test_an_error_has_openais_form(status: int, kind: str) -> None:
    error = ServeError(status, "no", code="c", param="p")
    told = {"message": "no", "type": kind, "param": "p", "code": "c"}
    assert error.body() == {"type": "error", "error": told}


def test_an_event_is_one_line_of_utf8_and_an_empty_one() -> None:
    assert event({"a": "é\n"}) == 'data: {"a": "é\\n"}\n\n'.encode()
    assert json.loads(event({"a": "é\n"})[len("data: ") :]) == {"a": "é\n"}
