"""Who acts: chat formats as append-only histories, language models, programs."""

from .chat import ChatFormat
from .language import Language, LanguageTable, language_players
from .program import Program

__all__ = [
    "ChatFormat",
    "Language",
    "LanguageTable",
    "Program",
    "language_players",
]
