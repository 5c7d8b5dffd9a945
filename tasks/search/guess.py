"""Warm-start actions: words of a role's prompt in the requested format."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from .world import TOWN_FACTS

KEYS = ("town", "trade", *TOWN_FACTS)
"""Keys of the generated world; in the world's passages, each value follows its key."""
WHOLE = 0.5
"""Probability that a guessed summary, extract or knowledge text is a key with its value."""


def guess(
    role: str, question_words: Sequence[str], lines: Sequence[str], rng: np.random.Generator
) -> str:
    """Returns a random legal action of `role`; `lines` are the role's documents or notes.

    Each word follows a space, as in prompts. The word therefore has the same tokens as in a prompt,
    and a model can copy the word.
    """
    if role == "reranker":
        count = int(rng.integers(1, len(lines) + 1)) if lines else 0
        return " ".join(str(number) for number in rng.permutation(len(lines))[:count])
    return f" {_words(role, question_words, lines, rng)}"


def _words(
    role: str, question_words: Sequence[str], lines: Sequence[str], rng: np.random.Generator
) -> str:
    words = " ".join(lines).split()
    if role == "rewriter":
        return " ; ".join(_pick(question_words, rng) for _ in range(int(rng.integers(1, 3))))
    if role == "searcher":
        return _pick([word for word in (*question_words, *words) if word != "known"], rng)
    pairs = [f"{key} {value}" for key, value in _follow(words) if key in KEYS]
    if role in ("extractor", "summarizer", "updater") and pairs and rng.random() < WHOLE:
        return _pick(pairs, rng)
    values = [value for key, value in _follow(words) if key in KEYS]
    return _pick(values or question_words, rng)


def _follow(words: Sequence[str]) -> list[tuple[str, str]]:
    return list(itertools.pairwise(words))


def _pick(words: Sequence[str], rng: np.random.Generator) -> str:
    return words[int(rng.integers(len(words)))]
