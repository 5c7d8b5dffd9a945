"""Who acts: chat formats as append-only histories, language models, programs, casts."""

from .cast import Against, Own, Swap
from .chat import ChatFormat
from .language import Language, LanguageTable, language_players
from .program import Program

__all__ = [
    "Against",
    "ChatFormat",
    "Language",
    "LanguageTable",
    "Own",
    "Program",
    "Swap",
    "language_players",
]
