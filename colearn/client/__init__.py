"""Client for an agent at an OpenAI-compatible endpoint: colearn's server or any other."""

from __future__ import annotations

from .agent import RemoteAgent

__all__ = ["RemoteAgent"]
