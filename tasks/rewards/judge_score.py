"""Reads a judge's score from its reply."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from colearn.text.reasoning import is_balanced, without_reasoning

_LONGEST = 20_000
"""Maximum number of characters of a reply that are read."""
_NUMBER = r"[-+]?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)"
_SCORE = re.compile(rf"({_NUMBER})(?:\s*(?:/|\bout\s+of\b)\s*({_NUMBER}))?\s*\.?", re.IGNORECASE)
"""A score such as `7`, `7/10` or `7 out of 10`."""
_LABEL = re.compile(
    r"^[#>\s]*(?:[-•+]\s+)?(?:(?:final|overall|total)\s+)?score\s*[:=\uff1a]"
    r"|\b(?:my|actual|real|true|revised|final|overall|total)\s+score\s*"
    r"(?:(?:is\s*)?[:=\uff1a]|is\s+(?=[-+.0-9]))",
    re.IGNORECASE,
)
"""The label of a statement: `Score` at the start of a line, or within a line `my score`, `final
score` and the like, which tell the judge's own score from one that it quotes."""
_REASON = re.compile(r"\s*(?:[,;]|\b(?:because|since|as|for)\b).*")
"""What may follow the number of a statement within a line."""
_EMPHASIS = str.maketrans("*_`", "   ")
_DECODER = json.JSONDecoder(object_pairs_hook=list)


def read_score(reply: str, lowest: float, highest: float) -> float | None:
    """Returns the score that a reply states; None if the reply states no score or several different
    scores.

    A statement is a line `Score: N`, the words `my score: N` within a line, or a JSON object with
    the key `score`. Without a statement the whole reply must be a number. Markdown emphasis is
    ignored. A number may be followed by the maximum of the scale, as in `7/10`; any other fraction
    is not a score. Reasoning is not read; a reply whose reasoning has no beginning or no end has no
    score.
    """
    if len(reply) > _LONGEST or not is_balanced(reply):
        return None
    text = without_reasoning(reply)
    stated = [*_lines(text, highest), *_objects(text, highest)]
    scores = set(stated or [_score(text, highest)])
    score = scores.pop() if len(scores) == 1 else None
    return score if score is not None and lowest <= score <= highest else None


def _lines(text: str, highest: float) -> Iterator[float | None]:
    """The score that each line with the label states; None for a line that does not state exactly
    one number."""
    for line in text.splitlines():
        plain = line.translate(_EMPHASIS)
        if label := _LABEL.search(plain):
            said = plain[label.end() :]
            yield _score(_REASON.sub("", said) if label.start() else said, highest)


def _objects(text: str, highest: float) -> Iterator[float | None]:
    """Returns the score in each JSON object that has the key `score`."""
    start = text.find("{")
    while start >= 0:
        try:
            pairs, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            pairs, end = [], start + 1
        for key, value in pairs:
            if key.strip().lower() == "score":
                yield _value(value, highest)
        start = text.find("{", end)


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


def whole_reply(answer: Any) -> str | None:
    """The text of a chat completion that ended with its end token; None if it was truncated or has
    another form.

    A completion without a `finish_reason` is assumed to be complete.
    """
    choices = answer.get("choices") if isinstance(answer, Mapping) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, Mapping):
        return None
    message = choice.get("message")
    text = message.get("content") if isinstance(message, Mapping) else None
    if not isinstance(text, str) or choice.get("finish_reason") not in (None, *_ENDED):
        return None
    return text


_ENDED = ("stop", "eos", "eos_token", "end_turn", "stop_sequence")
