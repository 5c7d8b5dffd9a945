"""What the server takes from clients at most."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.requests import ClientDisconnect

from .errors import ServeError

if TYPE_CHECKING:
    from starlette.requests import Request

_CLIENTS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """Bytes, counts and seconds."""

    max_batch: int = 64
    """Rows that decode together."""
    max_queue: int = 256
    """Requests that wait to be encoded, or for a row."""
    max_connections: int = 512
    """Of one address."""
    cache_bytes: int = 1024 * 2**20
    """KV caches of running requests and of sessions between their turns."""
    max_sessions: int = 4096
    session_idle: float = 600.0
    """Seconds after its last use before a session may be forgotten for a new one."""
    max_tokens: int = 4096
    """Of one answer."""
    max_messages: int = 512
    max_body: int = 2**20
    rate: float = 200.0
    """Requests a second and client, twice as many in a burst; 0 sets no limit."""
    read_timeout: float = 10.0
    """Seconds for a client to send a request, or to take what has been written to it."""
    grace: float = 30.0
    """Seconds for running requests to finish at the end."""


class RateLimiter:
    """A bucket of requests for each client, which fills at `rate` a second up to 2 * rate."""

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def check(self, client: str, now: float | None = None) -> None:
        """Errors: ServeError 429 with the seconds to wait."""
        if not self.rate:
            return
        now = time.monotonic() if now is None else now
        most = max(1.0, 2 * self.rate)
        left, before = self._buckets.pop(client, (most, now))
        left = min(most, left + (now - before) * self.rate)
        self._buckets[client] = (left - 1 if left >= 1 else left, now)
        if len(self._buckets) > _CLIENTS:
            self._buckets.popitem(last=False)
        if left < 1:
            wait = max(1, round((1 - left) / self.rate + 0.5))
            raise ServeError(
                429,
                f"more than {self.rate:g} requests a second; wait and try again",
                code="rate_limit_exceeded",
                headers={"retry-after": str(wait)},
            )


async def read_body(request: Request, limits: ServerLimits) -> bytes:
    """The body, of which no more than the limit is ever held.

    Errors: ServeError 413 for a long body, with or without a Content-Length, 408 for a slow one.
    """
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > limits.max_body:
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
