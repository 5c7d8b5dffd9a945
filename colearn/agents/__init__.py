"""Agents: chat formats as append-only histories, language models, programs."""

from .chat import ChatFormat, QuotingChat
from .dialogue import CLOSING, dialogue_spans
from .language import Language, language_players
from .program import Program
from .voice import Voice

__all__ = [
    "CLOSING",
    "ChatFormat",
    "Language",
    "Program",
    "QuotingChat",
    "Voice",
    "dialogue_spans",
    "language_players",
]
