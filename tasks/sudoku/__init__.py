"""Sudoku: a tool user and a planner fill a grid (Stronger-MAS, B.3 and C.2)."""

from .task import Sudoku

__all__ = ["Sudoku"]
