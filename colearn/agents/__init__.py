"""Who acts: chat formats as append-only histories, language models, programs, casts."""

from .cast import Against, Own, Swap
from .chat import ChatFormat
from .language import Language, LanguageTable, language_players
from .league import League
from .program import Program

__all__ = [
    "Against",
    "ChatFormat",
    "Language",
    "LanguageTable",
    "League",
    "Own",
    "Program",
    "Swap",
    "language_players",
]

NAMES = {
    "against": "cast:Against",
    "league": "league:League",
    "own": "cast:Own",
    "swap": "cast:Swap",
}
"""The shipped casts, by name."""
