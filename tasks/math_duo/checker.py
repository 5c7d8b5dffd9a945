"""Parses numbers from answers with math-verify; compares with a tolerance (Stronger-MAS, B.1)."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

from .reader import Reader

DELTA = 1e-6
_LONGEST = 200
_PLAIN = re.compile(r"[-+]?(?:\d{1,15}(?:\.\d{1,15})?|\.\d{1,15})(?:[eE][-+]?\d{1,2})?")
_RATIO = re.compile(r"([-+]?\d{1,15})\s*/\s*(\d{1,15})")
_TOO_LARGE = re.compile(r"!|(?:\^|\*\*).*(?:\^|\*\*)|(?:\^|\*\*)[^\d]{0,3}\d{4}|\\cdots|\\ldots")
"""Factorials, towers of powers, long exponents: not worth the time until their reader is ended."""
_READER = Reader()


def equal(one: float, other: float) -> bool:
    """NumEq: an absolute or a relative error of at most 1e-6, relative to max(1, |other|)."""
    gap = abs(one - other)
    return gap <= DELTA or gap / max(1.0, abs(other)) <= DELTA


def plain_number(text: str) -> float | None:
    """Parses a plain number or a ratio of whole numbers."""
    text = text.strip().replace(",", "")
    if _PLAIN.fullmatch(text):
        return float(text)
    ratio = _RATIO.fullmatch(text)
    if ratio and int(ratio[2]):
        return float(Fraction(int(ratio[1]), int(ratio[2])))
    return None


@lru_cache(maxsize=4096)
def number(text: str) -> float | None:
    """Value of a final answer, LaTeX included; None if it is no finite real number.

    Errors: MissingExtra without math-verify, where the answer is no plain number.
    """
    plain = plain_number(text)
    if plain is not None or not text.strip() or len(text) > _LONGEST or _TOO_LARGE.search(text):
        return plain
    return _READER.read(text)
