"""ASGI middleware around every request: authentication, access log, error responses.

This module checks the host and the size of headers itself, for two reasons. Clients of this API
expect errors as JSON, but Starlette's TrustedHostMiddleware answers in plain text. Uvicorn limits
the size of headers only if the headers arrive in pieces.
"""

from __future__ import annotations

import hmac
import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import quote

from starlette.responses import JSONResponse

from colearn.deploy.client.protocol.errors import ServeError, report

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

access = logging.getLogger("colearn.deploy.serve.access")

_HEADERS = 16 * 1024


class Guard:
    """Checks, logs and counts requests.

    Without a `token`, requests are not authenticated. Instead, `hosts` restricts the Host header,
    which prevents DNS rebinding by a web page. `seen` is called with the route and the status of
    each request; the route is `none` for a request that matched none.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        token: str | None,
        hosts: frozenset[str] | None,
        draining: Callable[[], bool],
        seen: Callable[[str, int], None],
    ) -> None:
        self.app, self.draining, self.seen = app, draining, seen
        self._token = None if token is None else token.encode()
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = time.perf_counter()
        status = 0

        async def send_and_note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            self._check(scope)
            await self.app(scope, receive, send_and_note)
        except ServeError as error:
            await refuse(error)(scope, receive, send_and_note)
        except Exception as error:  # noqa: BLE001 - reported without its text, which may be a client's
            report(error)
            if not status:
                await refuse(ServeError(500, "internal error"))(scope, receive, send_and_note)
        path = quote(scope["path"], safe="/-_.~")[:80]
        elapsed = 1000 * (time.perf_counter() - started)
        access.info("%s %s %d %.1f ms", scope["method"][:16], path, status, elapsed)
        route = scope.get("route")
        self.seen("none" if route is None else route.path, status)

    def _check(self, scope: Scope) -> None:
        path = scope["path"]
        headers = dict(scope["headers"])
        if sum(len(name) + len(value) for name, value in scope["headers"]) > _HEADERS:
            raise ServeError(431, f"the headers exceed {_HEADERS} bytes; send fewer")
        if b"content-length" in headers and b"transfer-encoding" in headers:
            raise ServeError(
                400,
                "the request has Content-Length and Transfer-Encoding; send Content-Length alone",
                headers={"connection": "close"},  # the rest may be a smuggled request
            )
        if self._hosts is not None and _host(headers.get(b"host", b"")) not in self._hosts:
            raise ServeError(
                403,
                "this server answers to localhost only; start it with a token and --host to call "
                "it by another name",
                code="forbidden_host",
            )
        if not (path.startswith("/v1/") or path == "/metrics"):
            return
        if self._token is not None:
            authorization = headers.get(b"authorization", b"")
            scheme, _, token = authorization.partition(b" ")
            if scheme.lower() != b"bearer":  # Anthropic's clients have a header of their own
                token = headers.get(b"x-api-key", b"")
            if not hmac.compare_digest(token.strip(), self._token):
                raise ServeError(
                    401,
                    "no or wrong token; send the header Authorization: Bearer TOKEN",
                    code="invalid_api_key",
                    headers={"www-authenticate": "Bearer"},
                )
        if self.draining():
            raise ServeError(503, "the server is shutting down", headers={"retry-after": "5"})


def refuse(error: ServeError) -> JSONResponse:
    """Returns the JSON response for a refused request."""
    return JSONResponse(error.body(), status_code=error.status, headers=error.headers)


def _host(header: bytes) -> str:
    """Returns the name in a Host header, without the port."""
    text = header.decode("latin-1").lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.rpartition(":")[0] if ":" in text else text
