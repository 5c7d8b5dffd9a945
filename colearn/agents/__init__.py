"""Agents: append-only chat formats, players that are language models, and players that are
programs."""

from .agent_spec import AgentSpec
from .chat_format import ChatFormat, QuotingChat
from .dialogue import CLOSING, dialogue_spans
from .language import Language, language_players
from .program import Program

__all__ = [
    "CLOSING",
    "AgentSpec",
    "ChatFormat",
    "Language",
    "Program",
    "QuotingChat",
    "dialogue_spans",
    "language_players",
]
