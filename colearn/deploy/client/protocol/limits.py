"""Server limits: batch, queue, body size and request rate."""

from __future__ import annotations

import asyncio
import math
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.requests import ClientDisconnect

from .errors import ServeError

if TYPE_CHECKING:
    from starlette.requests import Request

_CLIENTS = 10_000
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
    max_connections: int = 512
    """Maximum number of connections from one address."""
    cache_bytes: int = 1024 * 2**20
    """Maximum total size, in bytes, of the KV caches of running requests and idle sessions."""
    max_sessions: int = 4096
    session_idle: float = 600.0
    """Number of seconds without use after which a new session may replace an idle session."""
    max_tokens: int = 4096
    """Maximum number of tokens in an answer."""
    max_messages: int = 512
    max_body: int = 2**20
    rate: float = 200.0
    """Maximum number of requests per second from each client; bursts of twice this number are
    allowed. 0 disables the limit."""
    read_timeout: float = 10.0
    """Maximum time, in seconds, that a client may take to send a request, and to read the data that
    the server has written."""
    grace: float = 30.0
    """Maximum time, in seconds, that running requests may take to finish at shutdown."""


class RateLimiter:
    """Token bucket per client, refilled with `rate` tokens per second, up to 2 * rate tokens."""

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def check(self, client: str, seconds: float | None = None) -> None:
        """Counts a request that arrives when the monotonic clock reads `seconds`.

        Errors: ServeError 429 with the seconds to wait.
        """
        if not self.rate:
            return
        seconds = time.monotonic() if seconds is None else seconds
        capacity = max(1.0, 2 * self.rate)
        tokens, before = self._buckets.pop(client, (capacity, seconds))
        tokens = min(capacity, tokens + (seconds - before) * self.rate)
        self._buckets[client] = (tokens - 1 if tokens >= 1 else tokens, seconds)
        if len(self._buckets) > _CLIENTS:
            self._buckets.popitem(last=False)
        if tokens < 1:
            wait = math.ceil((1 - tokens) / self.rate)
            raise ServeError(
                429,
                f"more than {self.rate:g} requests a second; wait and try again",
                code="rate_limit_exceeded",
                headers={"retry-after": str(wait)},
            )


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
