"""Agents: chat formats as append-only histories, language models, programs."""

from .chat import ChatFormat, QuotingChat
from .language import Language, LanguageTable, language_players
from .program import Program
from .voice import Voice

__all__ = [
    "ChatFormat",
    "Language",
    "LanguageTable",
    "Program",
    "QuotingChat",
    "Voice",
    "language_players",
]
