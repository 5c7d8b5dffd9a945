"""Access control: the bearer token, and the host names accepted by a server without a token."""

from __future__ import annotations

from pathlib import Path

from colearn.deploy.client.loopback import is_loopback
from colearn.errors import ConfigError

LOOPBACK = frozenset(("localhost", "127.0.0.1", "::1"))


def read_token(
    file: Path | None, environment_token: str | None, *, host: str, insecure: bool
) -> str | None:
    """Returns the token from the file or, without a file, from the environment; None if neither is
    set.

    Errors: ConfigError if the file contains no token, or if a server without a token would be
    reachable from other machines.
    """
    token = environment_token or None
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
    """Returns the host names under which a server without a token accepts requests; None means any
    name.

    This check prevents DNS rebinding, where a web page maps its own domain to this machine's
    address.
    """
    if token is not None or not is_loopback(host):
        return None
    return frozenset((*LOOPBACK, host))
