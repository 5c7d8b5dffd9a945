"""Parses numbers from answers with math-verify; compares with a tolerance (Stronger-MAS, B.1)."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from math import factorial, isfinite

from .reader import AnswerReader
from .typeset import typeset

DELTA = 1e-6
_LONGEST = 200
_PLAIN = re.compile(r"[-+]?(?:\d{1,15}(?:\.\d{0,15})?|\.\d{1,15})(?:[eE][-+]?\d+)?")
_WHOLE = re.compile(r"[-+]?[\d,]+")
_RATIO = re.compile(r"([-+]?\d{1,15})\s*/\s*(\d{1,15})")
_MIXED = re.compile(r"([-+]?)(\d{1,15}) ([1-9]\d?)\s*/\s*(\d{1,15})")
_SPACE = r"(?: |~|\\,|\\ |\\;|\\:|\\!|\\(?:q?quad|enspace|thinspace)(?![a-zA-Z]))"
_COMMA = r"(?:,|\{,\}|,\\!)"
_THOUSANDS = re.compile(
    rf"(?<![\d.,^_])[1-9]\d{{0,2}}(?:(?:{_COMMA}\d{{3}})+|(?:{_SPACE}\d{{3}})+)"
    rf"(?!\d|{_COMMA}\s*\d|{_SPACE}*[\d/])"
)
_SEVERAL = re.compile(
    rf"\d\s*{_COMMA}(?:\s|{_SPACE})*[-+]?[.\d]"  # a list, or a decimal comma
    rf"|\d(?:\s|{_SPACE})+\d"  # two numbers side by side
    r"|\.\d*\."  # two decimal points
    r"|\d\s+\.\s*\d|\d\.\s+\d"
    r"|\d.*(?:[-=]>|[\u2192\u21d2]|\\(?:to|sim|mapsto|implies|iff|(?:long)?(?:right|left)+arrow"
    r"|(?:Long)?(?:Right|Left)+arrow)(?![a-zA-Z])).*\d"  # steps of a derivation
    r"|\d\W*\b(?:or|and|to)\b\W*\d"
    rf"|\d(?:\s|{_SPACE})*\\(?:text|mathrm|textrm|mbox)\{{[^{{}}]*\}}(?:\s|{_SPACE}|[,;])*[-+]?\d"
    r"|\d[eE][-+]?\d"  # scientific notation inside an expression, where e is Euler's number
    r"|0[xX]\d|\d_"
    r"|\d\s*(?:[|&;]|\\\\)\s*[-+]?\d"  # cells of a table or a matrix
    r"|\d['\u2019\u2032](?!\d{3}(?:\D|$))\s*\d"  # feet and inches
    r"|\\circ\}?\s*\d"  # degrees and minutes
    # a second value in brackets: 42 (21), \frac{1}{4} (0.25)
    r"|(?:(?<![\d._^])\d[\d.]*|(?<!_)\{[^{}]*\})\s+\("
    r"|\d:[0-5]\d(?!\d)|\d\s*--\s*\d"  # a time of day or a ratio; a range
    r"|\d(?:\s|" + _SPACE + r")*\\text\{\s*(?:hundred|thousand|[mbtr]+illion|dozen)"
    r"|\\sqrt\s*\d\d"  # the root of the first digit, as in LaTeX, or of the number
    r"|\\[bp]?mod(?![a-zA-Z])|%\s*[-+(\d]"  # a remainder
    r"|\\(?:[hv]?phantom|[bx]?cancel)(?![a-zA-Z])"  # digits that are not shown, or struck out
    # a bound
    r"|^\$?\s*(?:\\(?:[lg]eq?|[lg]eqslant|[lg]t|neq?|not)(?![a-zA-Z])|[<>\u2260\u2264\u2265])"
)
"""Texts with several numbers, bounds, and texts for which graders disagree on the value."""
_POWER = r"(?:\^|\*\*)"
_TOO_LARGE = re.compile(
    rf"!|{_POWER}[^-+*/\\\s]*{_POWER}|{_POWER}[^\d]{{0,3}}\d{{4}}|\\cdots|\\ldots"
)
"""Large factorials, towers of powers and long exponents, which are rejected immediately instead of
running into the reader's time limit."""
_FACTORIAL = re.compile(r"(?<![\d.!])(1?\d|20)\s?!(?![!=])")
"""A factorial of at most 20, whose value is exact in Python's and sympy's numbers."""
_PYTHON_POWER = re.compile(r"(?:\*\*\s*|\^(?=-))(-?\d+(?:\.\d+)?)")
"""A power in Python's form, or one with a negative exponent without braces."""
_PERCENT = re.compile(r"\\(?:text|mathrm)\{\s*percent\s*\}")
_ENDS_IN_PERCENT = re.compile(r"(?:%|percent)\$?$", re.IGNORECASE)
_SPACED_PERCENT = re.compile(rf"{_SPACE}+(?=\\?%)")
_FONT = re.compile(
    r"\\(?:text|textbf|textit|textrm|mathbf|mathrm|mathit|mathsf|boldsymbol|bm|underline|emph)"
    r"\{([^{}\\a-zA-Z]+)\}"
)
"""A whole answer in another font; a text with letters may be a word or a unit."""
_ANGLE = re.compile(r"\\(?:sin|cos|tan|cot|sec|csc)(?![a-zA-Z]).*\\circ")
_DEGREES = re.compile(r"(\d+(?:\.\d+)?)\s*\^\s*(?:\{\s*\\circ\s*\}|\\circ)")
_SUBSCRIPT = re.compile(r"\d_\{?(\d+)\}?$")
"""The base of a number that is written in another one, such as 1011_2."""
_ASSIGNED = re.compile(r"([a-zA-Z])\s*=")
_UNKNOWN = re.compile(r"\s*[a-zA-Z]\s*")
_WORD = re.compile(r"[a-zA-Z]{3,}")
_READER = AnswerReader()


class Percentage(float):
    """The value of a percentage, such as 0.6 of 60%."""


def equal(value: float, reference: float) -> bool:
    """NumEq: whether the absolute error is at most 1e-6 * max(1, |reference|). As in math-verify, a
    percentage also equals its number of percent: 60% equals 0.6 and 60."""
    if _near(value, reference):
        return True
    if isinstance(value, Percentage) == isinstance(reference, Percentage):
        return False
    if isinstance(value, Percentage):
        return _near(100 * value, reference)
    return _near(value, 100 * reference)


def _near(value: float, reference: float) -> bool:
    gap = abs(value - reference)
    return gap <= DELTA or gap / max(1.0, abs(reference)) <= DELTA


def plain_number(text: str) -> float | None:
    """Value of a plain number, a ratio of whole numbers, or a mixed number such as 3 1/2.

    Commas or spaces may separate thousands. A text with any other comma is not a plain number.
    """
    text = _without_thousands(text)
    if _PLAIN.fullmatch(text):
        value = float(text)
        return value if isfinite(value) else None
    ratio = _RATIO.fullmatch(text)
    if ratio and int(ratio[2]):
        return float(Fraction(int(ratio[1]), int(ratio[2])))
    mixed = _MIXED.fullmatch(text)
    if mixed and int(mixed[3]) < int(mixed[4]):
        value = float(int(mixed[2]) + Fraction(int(mixed[3]), int(mixed[4])))
        return -value if mixed[1] == "-" else value
    return None


@lru_cache(maxsize=4096)
def number(text: str) -> float | None:
    """Value of a final answer, LaTeX included; a `Percentage` if it is one. None if it is not a
    finite real number or is ambiguous, for example because of a decimal comma.

    Errors: MissingExtra without math-verify, if the answer is not a plain number.
    """
    plain = plain_number(text)
    if plain is not None or not text.strip() or len(text) > _LONGEST:
        return plain
    text = _without_thousands(text)
    if _TOO_LARGE.search(text) or _SEVERAL.search(text):
        return None
    if _ANGLE.search(text):
        text = _DEGREES.sub(r"(\\frac{\1\\pi}{180})", text)
    text = re.sub(r"\\lg(?![a-zA-Z])", r"\\log_{10}", text)
    text = _PYTHON_POWER.sub(r"^{\1}", text)
    if "**" in text:
        return None  # LaTeX has no such sign
    value = _READER.read(text)
    if value is None:
        return _last_side(text.strip("$").split("="))
    return Percentage(value) if _ENDS_IN_PERCENT.search(text) else value


def _last_side(sides: list[str]) -> float | None:
    """Value of the last side of an equation, if each other side is an unknown or has the same
    value; None for a text that is no equation."""
    *others, last = sides
    value = number(last) if others else None
    if value is None:
        return None
    known = [number(side) for side in others if not _UNKNOWN.fullmatch(side)]
    return value if all(side is not None and equal(side, value) for side in known) else None


@lru_cache(maxsize=4096)
def same_expression(gold: str, answer: str) -> bool:
    """Whether an answer equals the gold answer. Whole numbers must be equal, and other numbers
    within 1e-6; math-verify compares expressions, intervals, tuples, matrices and texts.

    Errors: MissingExtra without math-verify, if the answers differ as texts and as plain numbers.
    """
    texts = [typeset(text).strip("$").strip() for text in (gold, answer)]
    texts = [_FACTORIAL.sub(lambda match: str(factorial(int(match[1]))), text) for text in texts]
    if texts[0] == texts[1]:
        return True
    if all(_WORD.fullmatch(text) for text in texts):
        return texts[0].lower() == texts[1].lower()  # not a product, equal to its anagrams
    for marked in (_SUBSCRIPT.search, _ASSIGNED.match):
        marks = {mark[1] for text in texts if (mark := marked(text))}
        if len(marks) > 1:
            return False  # two bases, or two unknowns
    if not texts[1] or len(texts[1]) > _LONGEST or _TOO_LARGE.search(texts[1]):
        return False
    values = [number(text) for text in texts]
    if values[0] is not None and all(_WHOLE.fullmatch(text) for text in texts):
        return values[0] == values[1]
    if values[0] is not None:
        return values[1] is not None and equal(values[1], values[0])
    return _READER.same(*texts)


def _without_thousands(text: str) -> str:
    """Returns the text without typographic characters, a font, and thousands separators, and with
    the values of small factorials."""
    text = _PERCENT.sub(r"\\%", typeset(text)).rstrip(",;")
    text = _SPACED_PERCENT.sub("", text)
    text = _FACTORIAL.sub(lambda match: str(factorial(int(match[1]))), text)
    if font := _FONT.fullmatch(text):
        text = font[1].strip()
    return _THOUSANDS.sub(lambda match: re.sub(r"\D", "", match[0]), text)
