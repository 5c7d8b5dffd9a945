"""Client for an agent at an OpenAI-compatible endpoint: colearn's server or any other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .agent import RemoteAgent

__all__ = ["RemoteAgent"]


def __getattr__(name: str) -> Any:
    """Import `RemoteAgent` on first use, since it needs the extra `serve`. Workflows use the tool
    protocol in `colearn.deploy.client.protocol`, which does not need that extra."""
    if name != "RemoteAgent":
        raise AttributeError(f"module 'colearn.deploy.client' has no attribute '{name}'")
    from .agent import RemoteAgent

    return RemoteAgent
