"""TextArena's games as text tasks."""

from .task import TextArena

__all__ = ["TextArena"]
