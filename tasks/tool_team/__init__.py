"""A tool user who writes Python and a planner who decides: the team that plays the games."""

from .state import Decision, TeamState, ToolRun
from .task import PLAN, TOOL, ToolTeam

__all__ = ["PLAN", "TOOL", "Decision", "TeamState", "ToolRun", "ToolTeam"]
