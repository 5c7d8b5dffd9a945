"""Writes the typographic characters of an answer in ASCII and LaTeX."""

from __future__ import annotations

import re
import unicodedata

_SIGNS = str.maketrans(
    {
        **dict.fromkeys("\u00a0\u2007\u2009\u202f\u205f", " "),
        **dict.fromkeys("\u200b\u200e\u200f\u2060\ufeff", ""),
        **dict.fromkeys("\u2010\u2011\u2212\ufe63\uff0d", "-"),
        "\u2044": "/",
        "\u2215": "/",
        "\u00b0": r"^\circ",
    }
)
"""Spaces, characters without width, minus signs, fraction slashes and the sign of degrees. A dash
(U+2013, U+2014) is a minus sign at the start of a number only, since between two numbers it is a
range."""
_DASH = re.compile("((?:^|=)\\s*\\$?\\s*)[\u2013\u2014]")
_FRACTION = re.compile("[\u00bc-\u00be\u2150-\u215e\u2189]")
_RAISED = re.compile("[\u207b\u00b2\u00b3\u00b9\u2070\u2074-\u2079]+")
_ROOT = re.compile(r"\u221a\s*(?:(\d+(?:\.\d+)?)|\(([^()]*)\))")
_FULL_STOP = re.compile(r"(?<![.\s])\.$")
_BOLD = re.compile(r"(\*\*|__|\*|_|`)(?=\S)(.*?\S)\1")


def typeset(text: str) -> str:
    """The answer without typographic characters, without Markdown emphasis around it, and without
    the full stop of a sentence."""
    text = _FULL_STOP.sub("", text.strip())
    while emphasised := _BOLD.fullmatch(text):
        text = _FULL_STOP.sub("", emphasised[2])
    text = _DASH.sub(r"\1-", text.translate(_SIGNS))
    text = _FRACTION.sub(_fraction, text)
    text = _RAISED.sub(lambda raised: "^{" + _plain(raised[0]) + "}", text)
    return _ROOT.sub(lambda root: rf"\sqrt{{{root[1] or root[2]}}}", text).strip()


def _fraction(sign: re.Match[str]) -> str:
    """A fraction in one character, such as `1/2`; after a whole number it is part of a mixed
    number."""
    before = sign.string[: sign.start()]
    return (" " if before[-1:].isdigit() else "") + _plain(sign[0]).replace("\u2044", "/")


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).replace("\u2212", "-")
