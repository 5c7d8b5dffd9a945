"""Sokoban: a tool user and a planner push boxes onto goals (Stronger-MAS, B.5)."""

from .task import Sokoban

__all__ = ["Sokoban"]
