"""Teams that argue about one answer: multi-agent debate, and an assistant with a checker."""

from .task import AssistantTeam, Debate

__all__ = ["AssistantTeam", "Debate"]
