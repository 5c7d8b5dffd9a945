"""Numbers out of answers: math-verify reads, and a tolerance compares (Stronger-MAS, B.1)."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from functools import lru_cache
from importlib import import_module
from typing import Any

from colearn.errors import MissingExtra

DELTA = 1e-6
_LONGEST = 200
_PLAIN = re.compile(r"[-+]?(?:\d{1,15}(?:\.\d{1,15})?|\.\d{1,15})(?:[eE][-+]?\d{1,2})?")
_RATIO = re.compile(r"([-+]?\d{1,15})\s*/\s*(\d{1,15})")
_GROWS = r"(?:\^|\*\*|exp|sinh|cosh)"
_COUNT = r"\{\d{1,3}\}"
_EXPONENT = (
    r"\s*(?:[-+]?\d{1,3}(?!\d)|[a-zA-Z]|\\[a-zA-Z]+|"
    r"\{[^\d{}]*(?:\d{1,3}(?:\s*[./]\s*\d{1,3})?|\\[dt]?frac\s*" + 2 * _COUNT + r")?[^\d{}]*\})"
)
"""One short number, ratio or symbol: a product of them may be of any size."""
_TOO_LARGE = re.compile(
    rf"!|{_GROWS}.*{_GROWS}|(?:\^|\*\*)(?!{_EXPONENT})|\\[cl]dots|\\(?:int|lim|sum|prod|Gamma)|"
    rf"choose|binom(?!{2 * _COUNT})|binom.*(?:binom|{_GROWS})|{_GROWS}.*binom"
)
"""Factorials, towers of powers, long exponents, integrals: evaluating one may never end."""


def equal(one: float, other: float) -> bool:
    """NumEq: an absolute or a relative error of at most 1e-6, relative to max(1, |other|)."""
    gap = abs(one - other)
    return gap <= DELTA or gap / max(1.0, abs(other)) <= DELTA


def plain_number(text: str) -> float | None:
    """A number or a ratio of whole numbers, as they are written."""
    text = text.strip().replace(",", "")
    if _PLAIN.fullmatch(text):
        return float(text)
    ratio = _RATIO.fullmatch(text)
    if ratio and int(ratio[2]):
        return float(Fraction(int(ratio[1]), int(ratio[2])))
    return None


@lru_cache(maxsize=4096)
def number(text: str) -> float | None:
    """What a final answer comes to, also in LaTeX; None where that is no finite real number.

    Errors: MissingExtra without math-verify, where the answer is no plain number.
    """
    found = plain_number(text)
    if found is not None or not text.strip() or len(text) > _LONGEST or _TOO_LARGE.search(text):
        return found
    parsed = _parse("\\boxed{" + text.strip().strip("$") + "}")
    value = parsed[0] if parsed else None
    if not getattr(value, "is_number", False):
        return None
    try:
        real = float(value.doit().evalf())  # type: ignore[union-attr] # a sympy number
    except (TypeError, ValueError, OverflowError):
        return None
    return real if math.isfinite(real) else None


def _parse(text: str) -> list[Any]:
    try:
        module = import_module("math_verify")
    except ModuleNotFoundError as error:
        if error.name != "math_verify":
            raise
        raise MissingExtra("math-verify", "math") from None
    # its own time limit needs signals, which only a process's main thread has
    return list(module.parse(text, parsing_timeout=None))
