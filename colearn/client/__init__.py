"""The client of an agent behind an OpenAI-compatible endpoint: colearn's server or any other."""

from __future__ import annotations

from .agent import RemoteAgent

__all__ = ["RemoteAgent"]
