"""Role studies: teams with swapped policies or separately trained agents, and rewards by role."""

from .page import write_study

__all__ = ["write_study"]
