"""Reads a judge's score from its reply."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from colearn.text.reasoning import is_balanced, without_reasoning

_LONGEST = 20_000
"""Maximum number of characters of a reply that are read."""
_NUMBER = r"[-+]?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)"
_SCORE = re.compile(rf"({_NUMBER})(?:\s*(?:/|\bout\s+of\b)\s*({_NUMBER}))?\s*\.?", re.IGNORECASE)
"""A score such as `7`, `7/10` or `7 out of 10`."""
_LABEL = re.compile(
    r"^[#>\s]*(?:[-•+]\s+)?(?:(?:final|overall|total)\s+)?score\s*"
    rf"(?:[(\[](?P<scale>[^)\]]*?(?P<most>{_NUMBER})\s*)[)\]]\s*)?[:=\uff1a]"
    r"|\b(?:my|actual|real|true|revised|final|overall|total)\s+score\s*"
    r"(?:(?:is\s*)?[:=\uff1a]|is\s+(?=[-+.0-9]))",
    re.IGNORECASE,
)
"""The label of a statement: `Score` or `Score (0-10)` at the start of a line, or within a line `my
score`, `final score` and the like, which tell the judge's own score from one that it quotes."""
_TAGGED = re.compile(r"<score>([^<]{0,99})</score>", re.IGNORECASE)
_KEY = re.compile(r"\s*(?:(?:final|overall|total)[_\s-]*)?score\s*", re.IGNORECASE)
_SCALE_KEY = re.compile(r"max|highest|scale|range|out[_\s-]*of", re.IGNORECASE)
_DENIED = re.compile(
    r"n['\u2019]t\b|\b(?:not|no|never|nor|neither|without|instead|rather|if|unless|until|had|were"
    r"|would|could|should|might|may)\b",
    re.IGNORECASE,
)
"""Words before a statement within a line which deny it or make it depend on a condition."""
_REASON = re.compile(r"\s*,?\s*\b(?:because|since|as|for)\b[^0-9]*", re.IGNORECASE)
"""What may follow the number of a statement within a line."""
_EMPHASIS = str.maketrans("*_`", "   ")
_DECODER = json.JSONDecoder(object_pairs_hook=list)


def read_score(reply: str, lowest: float, highest: float) -> float | None:
    """Returns the score that a reply states; None if the reply states no score or several different
    scores.

    A statement is a line `Score: N`, the words `my score: N` within a line, `<score>N</score>`, or
    a JSON object with the key `score` or `final_score`. A statement within a line is unreadable if
    words before it deny it, or if anything but a reason follows. Without a statement the whole
    reply must be a number. Markdown emphasis is ignored. A number may be followed by the maximum of
    the scale, as in `7/10`; any other fraction is not a score. Reasoning is not read; a reply whose
    reasoning has no beginning or no end has no score.
    """
    if len(reply) > _LONGEST or not is_balanced(reply):
        return None
    text = without_reasoning(reply)
    stated = [*_lines(text, highest), *_tags(text, highest), *_objects(text, highest)]
    scores = set(stated or [_score(text, highest)])
    score = scores.pop() if len(scores) == 1 else None
    return score if score is not None and lowest <= score <= highest else None


def _lines(text: str, highest: float) -> Iterator[float | None]:
    """The score that each line with the label states; None for a line that does not state exactly
    one number."""
    for line in text.splitlines():
        plain = line.translate(_EMPHASIS)
        if label := _LABEL.search(plain):
            statement = plain[label.end() :]
            other_scale = label["most"] and float(label["most"].lstrip("-")) != abs(highest)
            if other_scale or (label.start() and _DENIED.search(plain[: label.start()])):
                yield None
            else:
                yield _score(_within_line(statement) if label.start() else statement, highest)


def _within_line(statement: str) -> str:
    """The number of a statement within a line, without the reason that follows it."""
    number = _SCORE.match(statement.lstrip())
    if number and _REASON.fullmatch(statement.lstrip()[number.end() :]):
        return number[0]
    return statement


def _tags(text: str, highest: float) -> Iterator[float | None]:
    for tag in _TAGGED.finditer(text):
        yield _score(tag[1], highest)


def _objects(text: str, highest: float) -> Iterator[float | None]:
    """Returns the score in each JSON object that has a key for it; None for an object that states
    another scale than 0 to `highest`."""
    start = text.find("{")
    while start >= 0:
        try:
            pairs, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            pairs, end = [], start + 1
        scores = [value for key, value in pairs if _KEY.fullmatch(key)]
        if scores and any(_other_scale(key, value, highest) for key, value in pairs):
            yield None
        for value in scores:
            yield _value(value, highest)
        start = text.find("{", end)


def _other_scale(key: str, value: Any, highest: float) -> bool:
    """Whether a key of an object states a scale that does not end with `highest`."""
    if not _SCALE_KEY.search(key) or _KEY.fullmatch(key):
        return False
    end = value[-1] if isinstance(value, list) and value else value
    numbers = re.findall(_NUMBER, str(end)) if isinstance(end, int | float | str) else []
    return bool(numbers) and float(numbers[-1].lstrip("-")) != abs(highest)


def _value(value: Any, highest: float) -> float | None:
    if isinstance(value, str):
        return _score(value, highest)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def _score(text: str, highest: float) -> float | None:
    """The number in a text; None if the text contains anything else."""
    match = _SCORE.fullmatch(text.translate(_EMPHASIS).strip())
    if match is None or (match[2] is not None and float(match[2]) != highest):
        return None
    return float(match[1])
