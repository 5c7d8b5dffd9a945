"""Role studies, which measure teams with swapped policies, teams of separately trained agents, and
rewards by role."""

from .page import write_study

__all__ = ["write_study"]
