"""reasoning-gym's procedural data sets as text tasks."""

from .task import ReasoningGym

__all__ = ["ReasoningGym"]
