"""Short-answer metrics of SQuAD's evaluation script, with HotpotQA's rule for closed questions.
Each is in [0, 1] and is the best score over the gold answers."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence

_CLOSED = {"yes", "no", "noanswer"}
"""Answers of HotpotQA's closed questions."""
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalized(text: str) -> str:
    """Returns the text in lower case, without ASCII punctuation, articles and double spaces."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def exact_match(answer: str, gold: Sequence[str]) -> float:
    """1 if the normalised texts are equal."""
    return _best(answer, gold, lambda text, expected: float(text == expected))


def f1(answer: str, gold: Sequence[str]) -> float:
    """Harmonic mean of precision and recall over normalised words, counted with multiplicity.

    If normalisation removes all words of one text, the score is 1 if it also removes all words of
    the other text, and 0 otherwise. As in HotpotQA's script, `yes`, `no` and `noanswer` score 1 if
    both texts are equal, and 0 otherwise.
    """
    return _best(answer, gold, _overlap)


def accuracy(answer: str, gold: Sequence[str]) -> float:
    """1 if the normalised answer contains the gold answer's words consecutively."""
    return _best(answer, gold, lambda text, expected: float(f" {expected} " in f" {text} "))


def _best(answer: str, gold: Sequence[str], score: Callable[[str, str], float]) -> float:
    text = normalized(answer)
    return max(score(text, normalized(reference)) for reference in gold)


def _overlap(answer: str, gold: str) -> float:
    answer_words, gold_words = answer.split(), gold.split()
    if not answer_words or not gold_words or {answer, gold} & _CLOSED:
        return float(answer_words == gold_words)
    shared = sum((Counter(answer_words) & Counter(gold_words)).values())
    return 2.0 * shared / (len(answer_words) + len(gold_words))
