"""Teams that discuss one answer: multi-agent debate, an assistant with a checker, a single
agent."""

from .task import AssistantTeam, Debate, Solver

__all__ = ["AssistantTeam", "Debate", "Solver"]
