"""Teams that argue about one answer: multi-agent debate, an assistant with a checker, one alone."""

from .task import AssistantTeam, Debate, Solver

__all__ = ["AssistantTeam", "Debate", "Solver"]
