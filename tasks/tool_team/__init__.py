"""The team that plays the games: a tool user who writes Python and a planner who decides."""

from .state import PlannerDecision, TeamState, ToolRun
from .task import PLAN, TOOL, ToolTeam

__all__ = ["PLAN", "TOOL", "PlannerDecision", "TeamState", "ToolRun", "ToolTeam"]
