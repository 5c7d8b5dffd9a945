"""Server limits: batch, queue, sessions, memory, and the size and time of a request."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.requests import ClientDisconnect

from .errors import ServeError

if TYPE_CHECKING:
    from starlette.requests import Request

_DIGITS = 20
"""Maximum number of digits in a Content-Length, as in HTTP libraries; int() rejects thousands of
digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """Limits of a server, as bytes, counts and seconds."""

    max_batch: int = 64
    """Maximum number of rows (sequences) in a decode batch."""
    max_queue: int = 256
    """Maximum number of requests that wait for tokenisation or for a free row of the decode
    batch."""
    cache_bytes: int = 1024 * 2**20
    """Maximum total size, in bytes, of the KV caches of running requests and idle sessions."""
    max_sessions: int = 4096
    session_idle: float = 600.0
    """Number of seconds without use after which a new session may replace an idle session."""
    max_tokens: int = 4096
    """Maximum number of tokens in an answer."""
    max_body: int = 2**20
    read_timeout: float = 10.0
    """Maximum time, in seconds, that a client may take to send a request, and to read the data that
    the server has written."""
    grace: float = 30.0
    """Maximum time, in seconds, that running requests may take to finish at shutdown."""


async def read_body(request: Request, limits: ServerLimits) -> bytes:
    """Reads the body, holding at most `limits.max_body` bytes.

    Errors: ServeError 413 for a body that exceeds the limit, with or without a Content-Length;
    ServeError 408 for a body that arrives too slowly.
    """
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and (len(declared) > _DIGITS or int(declared) > limits.max_body):
        raise _too_large(limits)
    body = bytearray()
    try:
        async with asyncio.timeout(limits.read_timeout):
            async for part in request.stream():
                body += part
                if len(body) > limits.max_body:
                    raise _too_large(limits)
    except TimeoutError:
        raise ServeError(
            408,
            f"the body did not arrive within {limits.read_timeout:g} seconds",
            code="timeout",
            headers={"connection": "close"},
        ) from None
    except ClientDisconnect:
        raise ServeError(499, "the client has closed the connection") from None
    return bytes(body)


def _too_large(limits: ServerLimits) -> ServeError:
    return ServeError(
        413,
        f"the body exceeds {limits.max_body} bytes; send less",
        code="body_too_large",
        headers={"connection": "close"},
    )
