"""Ranges of a text: which parts of an answer are its content, and which tokens wrote them."""

from __future__ import annotations

from collections.abc import Sequence

Span = tuple[int, int]
"""Start and end of a part of a text, in characters."""


def joined(text: str, spans: Sequence[Span]) -> str:
    """Return the parts of a text as one text."""
    return "".join(text[start:end] for start, end in spans)


def inside(spans: Sequence[Span], start: int, end: int) -> list[Span]:
    """Return the parts of the original text that are `start` to `end` of the joined text."""
    parts: list[Span] = []
    passed = 0
    for first, last in spans:
        low, high = max(start - passed, 0), min(end - passed, last - first)
        if low < high:
            parts.append((first + low, first + high))
        passed += last - first
    return parts


def stripped(text: str, spans: Sequence[Span]) -> list[Span]:
    """Return the parts without the white space at both ends of the joined text."""
    content = joined(text, spans)
    return inside(spans, len(content) - len(content.lstrip()), len(content.rstrip()))


def shares(pieces: Sequence[bytes], text: str, spans: Sequence[Span]) -> list[bytes]:
    """Return the bytes that each piece contributes to the parts of a text. The pieces, joined,
    begin with the text in UTF-8."""
    ranges: list[Span] = []
    place = passed = 0
    for first, last in spans:
        start = passed + len(text[place:first].encode())
        passed = start + len(text[first:last].encode())
        place = last
        ranges.append((start, passed))
    contributed: list[bytes] = []
    begin = number = 0
    for piece in pieces:
        end = begin + len(piece)
        share = b""
        while number < len(ranges) and ranges[number][0] < end:
            low, high = ranges[number]
            share += piece[max(low - begin, 0) : max(high - begin, 0)]
            if high > end:
                break
            number += 1
        contributed.append(share)
        begin = end
    return contributed
