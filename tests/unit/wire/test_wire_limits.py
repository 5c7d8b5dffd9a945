"""Sizes and times of requests at their limits, and what a refusal is on the wire."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from starlette.requests import Request

from colearn.deploy.client.protocol.errors import ServeError
from colearn.deploy.client.protocol.events import event
from colearn.deploy.client.protocol.limits import ServerLimits, read_body


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
