"""Listening sockets of HTTP servers."""

from __future__ import annotations

import socket

from colearn.errors import ConfigError


def listen(host: str, port: int, *, field: str) -> socket.socket:
    """Returns a socket that accepts connections to this address; port 0 selects a free port.

    Errors: ConfigError beginning with `field` if the address cannot be used.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio turns Nagle's delay off only where the protocol is named
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(2048)
    except OSError as error:
        listening.close()
        raise ConfigError(
            f"{field}: {port}: {error.strerror or error}; give another one, or 0"
        ) from None
    return listening
