"""Plan-Path: a tool user and a planner find a path on a grid (Stronger-MAS, B.4 and D)."""

from .task import PlanPath

__all__ = ["PlanPath"]
