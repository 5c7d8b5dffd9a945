"""Creates HTTP clients with the environment's proxies and certificates, except on this machine."""

from __future__ import annotations

import ssl
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from colearn.errors import ConfigError, MissingExtra, reason_of

from .loopback import is_loopback

try:
    import httpx
except ModuleNotFoundError:
    raise MissingExtra("httpx", "serve") from None


def http_client(url: str, **settings: Any) -> httpx.AsyncClient:
    """Returns a client for the server at `url`; `settings` are those of httpx.

    A server on the loopback interface is reached directly, since no proxy can reach it. For any
    other server, the proxies and certificates of the environment apply (HTTP_PROXY, SSL_CERT_FILE).

    Errors: ConfigError if the environment's proxies or certificates cannot be used.
    """
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
