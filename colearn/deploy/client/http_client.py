"""HTTP clients, with the environment's proxies and certificates except on this machine, and
requests with answers of limited size."""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from colearn.errors import ConfigError, MissingExtra, reason_of

from .loopback import is_loopback

try:
    import httpx
except ModuleNotFoundError:
    raise MissingExtra("httpx", "serve") from None


class UnreadAnswer(Exception):
    """Raised for an answer whose content is not read; the message is the continuation of "the
    answer"."""

    def __init__(self, reason: str, status: int) -> None:
        super().__init__(reason)
        self.status = status


async def exchange(
    client: httpx.AsyncClient,
    method: str,
    url: str,
    body: Any = None,
    *,
    headers: Mapping[str, str] | None = None,
    longest: int,
) -> tuple[httpx.Response, bytes]:
    """Sends a request, with `body` as JSON unless it is None; returns the answer and its content,
    of at most `longest` bytes.

    Errors: UnreadAnswer for content that is compressed or too long; those of httpx.
    """
    content = None if body is None else json.dumps(body)
    sent = {**(headers or {}), **({} if body is None else {"Content-Type": "application/json"})}
    async with client.stream(method, url, content=content, headers=sent) as response:
        status = response.status_code
        if response.headers.get("content-encoding", "identity") != "identity":
            raise UnreadAnswer("is compressed, but no compression was requested", status)
        raw = bytearray()
        async for part in response.aiter_raw():
            raw += part
            if len(raw) > longest:
                raise UnreadAnswer(f"is longer than {longest} bytes", status)
    return response, bytes(raw)


def http_client(url: str, *, token: str | None = None, **settings: Any) -> httpx.AsyncClient:
    """Returns a client for the server at `url`, which sends `token` as a bearer token; `settings`
    are those of httpx.

    A server on the loopback interface is reached directly, since no proxy can reach it. For any
    other server, the proxies and certificates of the environment apply (HTTP_PROXY, SSL_CERT_FILE).

    Errors: ConfigError if the environment's proxies or certificates cannot be used.
    """
    settings["headers"] = {
        "Accept-Encoding": "identity",  # a few bytes may unpack to any number of them
        **({} if token is None else {"Authorization": f"Bearer {token}"}),
    }
    direct = is_loopback(urlsplit(url).hostname or "")
    try:
        if direct:
            return httpx.AsyncClient(trust_env=False, verify=_packaged_certificates(), **settings)
        return httpx.AsyncClient(**settings)
    except (ImportError, OSError, ValueError, httpx.InvalidURL) as error:
        raise ConfigError(
            f"the environment's proxy or certificates cannot be used ({reason_of(error)}); correct "
            "or unset HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY, SSL_CERT_FILE and SSL_CERT_DIR"
        ) from None


@cache
def _packaged_certificates() -> ssl.SSLContext:
    """The certificates that httpx trusts without the environment's. Reading them takes 15 ms and is
    done once for the process: a judge opens a client for each batch of answers."""
    return httpx.create_ssl_context(trust_env=False)
