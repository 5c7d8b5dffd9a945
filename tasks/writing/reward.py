"""Reward of a pair of texts: five parts, the first three of which are also gates."""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass

from .text import (
    characters,
    content_words,
    transition_kinds,
    transition_kinds_within,
    words_of,
)

BOUNDS, LENGTH, DIVERSITY, STYLE, COHERENCE = 0.5, 1.0, 0.5, 0.6, 0.4
"""Maximum reward of each part."""


@dataclass(frozen=True, slots=True)
class Band:
    """Two ranges of a ratio: a ratio in [full_from, full_to] earns the full reward, and a ratio
    outside [low, high] earns nothing."""

    low: float
    full_from: float
    full_to: float = math.inf
    high: float = math.inf

    def share(self, ratio: float) -> float | None:
        """The share of the full reward in [0, 1], linear between the two ranges; None outside [low,
        high]."""
        if not self.low <= ratio <= self.high:
            return None
        if ratio < self.full_from:
            return (ratio - self.low) / (self.full_from - self.low)
        if ratio > self.full_to:
            return (self.high - ratio) / (self.high - self.full_to)
        return 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoringRules:
    """Scoring rules of one variant of one task."""

    words: tuple[int, int]
    """Minimum and maximum number of words of each text, split at white space."""
    length: Band
    """Range for the characters of the second text divided by those of the first."""
    diversity: Band
    """Range for the number of distinct words of the second text divided by that of the first."""
    similarity: float
    """The Jaccard similarity of content words that earns the full reward."""
    logarithm: float | None
    """w of min(w ln(kinds + 1), 1); None selects CoMLRL's formula and its ways of counting."""
    second_only: bool = False
    """Whether transitions count only in the second text."""

    @property
    def peer(self) -> bool:
        """Whether CoMLRL's ways of counting apply."""
        return self.logarithm is None

    @property
    def highest(self) -> float:
        """Maximum reward of a pair of texts."""
        return BOUNDS + LENGTH + DIVERSITY + STYLE + COHERENCE * self.coherence(12)

    def coherence(self, kinds: int) -> float:
        """The share of the full reward in [0, 1] for a number of kinds of transitions, 0 to 12."""
        if self.logarithm is not None:
            return min(self.logarithm * math.log(kinds + 1), 1.0)
        return min(0.4 + 0.05 * (kinds - 1), 1.0) if kinds else 0.0


@dataclass(frozen=True, slots=True)
class ScoreParts:
    """Score of each part; the parts add up to the reward."""

    bounds: float = 0.0
    length: float = 0.0
    diversity: float = 0.0
    style: float = 0.0
    coherence: float = 0.0

    @property
    def total(self) -> float:
        """The reward."""
        return math.fsum(astuple(self))


def score(rules: ScoringRules, first: str, second: str) -> ScoreParts:
    """Score two texts. From the first failed gate on, parts earn nothing; points from earlier parts
    are kept."""
    least, most = rules.words
    if not all(least <= len(text.split()) <= most for text in (first, second)):
        return ScoreParts()
    sizes = [len(text) if rules.peer else characters(text) for text in (first, second)]
    length = rules.length.share(sizes[1] / sizes[0])
    if length is None:
        return ScoreParts(BOUNDS)
    words = words_of(first), words_of(second)
    content = content_words(words[0]), content_words(words[1])
    counted = (frozenset(words[0]), frozenset(words[1])) if rules.peer else content
    if not counted[0]:
        return ScoreParts(BOUNDS, LENGTH * length)
    diversity = rules.diversity.share(len(counted[1]) / len(counted[0]))
    if diversity is None:
        return ScoreParts(BOUNDS, LENGTH * length)
    union = content[0] | content[1]
    similarity = len(content[0] & content[1]) / len(union) if union else 0.0
    if rules.peer:
        kinds = transition_kinds_within(second if rules.second_only else first + second)
    else:
        kinds = transition_kinds(words[0]) | transition_kinds(words[1])
    return ScoreParts(
        BOUNDS,
        LENGTH * length,
        DIVERSITY * diversity,
        STYLE * min(similarity / rules.similarity, 1.0),
        COHERENCE * rules.coherence(len(kinds)),
    )
