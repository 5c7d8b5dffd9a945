"""One agent behind an OpenAI-compatible server, and the client that plays it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .remote import RemoteAgent

__all__ = ["RemoteAgent"]


def __getattr__(name: str) -> Any:
    if name == "RemoteAgent":  # httpx is an extra, and the server does without it
        from .remote import RemoteAgent

        return RemoteAgent
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
