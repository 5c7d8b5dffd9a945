"""Reference answers with the maximum reward; they are not good prose."""

from __future__ import annotations

from itertools import cycle, islice

from .reward import ScoringRules
from .text import characters, words_of
from .words import CONNECTORS, FILLERS, STOP_WORDS


def expanding_pair(rules: ScoringRules, text: str) -> tuple[str, str]:
    """Returns a text, and a second text with twice the length, twice the vocabulary and every kind
    of transition.

    The pair earns the maximum reward if the bounds in `words` allow 48 words and four times the
    minimum.
    """
    least, most = rules.words
    words = _content(text)
    size = max(least, min(12, most // 4))
    pool = words[: min(size, 12)]
    first = " ".join(islice(cycle(pool), size))
    second = [*CONNECTORS, *pool, words[len(pool)]]
    return first, _extended(second, pool, 2.0 * characters(first))


def matching_pair(rules: ScoringRules, text: str) -> tuple[str, str]:
    """Returns two texts of the same words, with every kind of transition; the second text is
    longer.

    The pair earns the maximum reward if the bounds in `words` allow 26 words and twice the minimum.
    """
    least, most = rules.words
    size = max(least, min(24, most // 2))
    pool = [*CONNECTORS, *_content(text)[: min(max(size - len(CONNECTORS), 1), 24)]]
    first = " ".join(islice(cycle(pool), size))
    target = (rules.length.full_from + rules.length.full_to) / 2
    return first, _extended([], pool, target * characters(first))


def _extended(words: list[str], pool: list[str], length: float) -> str:
    """Returns `words` followed by the words of `pool`, which repeat until the given number of
    characters is reached."""
    words = list(words)
    size = sum(len(word) + 1 for word in words) - 1
    for word in cycle(pool):
        if size >= length:
            return " ".join(words)
        words.append(word)
        size += len(word) + 1
    raise AssertionError("a pool is never empty")


def _content(text: str) -> list[str]:
    """Returns the text's distinct content words of five to twelve letters, in order, and then
    fillers."""
    text_words = (
        word
        for word in words_of(text)
        if word.isalpha() and 5 <= len(word) <= 12 and word not in STOP_WORDS
    )
    return [word for word in dict.fromkeys((*text_words, *FILLERS)) if word not in CONNECTORS]
