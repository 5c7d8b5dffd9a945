"""A tool user who writes Python and a planner who decides: the team that plays the games."""

from .state import PlannerDecision, TeamState, ToolRun
from .task import PLAN, TOOL, ToolTeam

__all__ = ["PLAN", "TOOL", "PlannerDecision", "TeamState", "ToolRun", "ToolTeam"]
