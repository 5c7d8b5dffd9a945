"""Client for an agent at an OpenAI-compatible endpoint: colearn's server or any other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .agent import RemoteAgent

__all__ = ["RemoteAgent"]


def __getattr__(name: str) -> Any:
    """`RemoteAgent`, imported on first use: it needs the extra `serve`, and the text protocol of
    tools in `colearn.client.protocol`, which workflows use, does not."""
    if name != "RemoteAgent":
        raise AttributeError(f"module 'colearn.client' has no attribute '{name}'")
    from .agent import RemoteAgent

    return RemoteAgent
