"""Agents: append-only chat formats, and players, which are language models or programs."""

from .chat_format import ChatFormat, QuotingChat
from .dialogue import CLOSING, dialogue_spans
from .language import AgentSpec, Language
from .programs import Program

__all__ = [
    "CLOSING",
    "AgentSpec",
    "ChatFormat",
    "Language",
    "Program",
    "QuotingChat",
    "dialogue_spans",
]
