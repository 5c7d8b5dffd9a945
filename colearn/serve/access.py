"""Access control: the bearer token, and the hosts that a server without one answers to."""

from __future__ import annotations

import ipaddress
from pathlib import Path

from colearn.errors import ConfigError

LOOPBACK = frozenset(("localhost", "127.0.0.1", "::1"))


def read_token(file: Path | None, given: str | None, *, host: str, insecure: bool) -> str | None:
    """Returns the token of a file, or the environment's; None without either.

    Errors: ConfigError for a file without a token, or if the server would be open to others.
    """
    token = given or None
    if file is not None:
        if not file.is_file():
            raise ConfigError(f"--token-file: no file {file}; write a token to it")
        token = file.read_text(encoding="utf-8", errors="replace").strip()
        if not token:
            raise ConfigError(f"--token-file: {file} is empty; write a token to it")
    if token is not None and not (token.isascii() and token.isprintable() and " " not in token):
        raise ConfigError(
            "--token-file: the token holds characters that no header can carry; make one with: "
            "openssl rand -hex 32"
        )
    if token is None and not insecure and not is_loopback(host):
        raise ConfigError(
            f"--host {host}: others could use the agent; give --token-file FILE "
            "(or COLEARN_TOKEN), or --insecure"
        )
    return token


def names_to_call(host: str, token: str | None) -> frozenset[str] | None:
    """Returns the host names that a server without a token answers to; None for any.

    This prevents DNS rebinding: a web page can give this machine's address another name.
    """
    if token is not None or not is_loopback(host):
        return None
    return frozenset((*LOOPBACK, host))


def is_loopback(host: str) -> bool:
    """Returns whether a host is this machine's loopback address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
