"""Text statistics in linear time: words, characters and kinds of transitions."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .words import STOP_WORDS, TRANSITIONS

_WORD = re.compile(r"\w+")


def words_of(text: str) -> list[str]:
    """The lower-case words: runs of letters, digits and underscores."""
    return _WORD.findall(text.lower())


def content_words(words: Sequence[str]) -> frozenset[str]:
    """The distinct words that are not stop words."""
    return frozenset(words) - STOP_WORDS


def characters(text: str) -> int:
    """Number of characters. A run of white space counts as one character inside the text, and as
    none at its ends."""
    return len(" ".join(text.split()))


def transition_kinds(words: Sequence[str]) -> frozenset[str]:
    """The kinds of transitions for which an entry occurs in the text as whole words."""
    return frozenset(
        kind
        for position, word in enumerate(words)
        for entry, kind in _ENTRIES.get(word, ())
        if tuple(words[position : position + len(entry)]) == entry
    )


def transition_kinds_within(text: str) -> frozenset[str]:
    """The kinds of transitions for which an entry occurs in the text, including inside longer
    words."""
    text = text.lower()
    return frozenset(
        kind for kind, entries in TRANSITIONS.items() if any(entry in text for entry in entries)
    )


def compact(text: str) -> str:
    """The lower-case words separated by single spaces; a text without words keeps its symbols."""
    return " ".join(words_of(text) or text.split())


def _entries() -> dict[str, tuple[tuple[tuple[str, ...], str], ...]]:
    entries_by_word: dict[str, tuple[tuple[tuple[str, ...], str], ...]] = {}
    for kind, entries in TRANSITIONS.items():
        for entry in entries:
            words = tuple(words_of(entry))
            entries_by_word[words[0]] = (*entries_by_word.get(words[0], ()), (words, kind))
    return entries_by_word


_ENTRIES = _entries()
"""Maps a first word to the entries that begin with it, each as a list of words with its kind."""
