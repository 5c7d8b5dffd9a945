"""Parses the roles' answers: queries, passage numbers, tagged text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from colearn.text.reasoning import without_reasoning

Entry = TypeVar("Entry")

_LISTED = re.compile(r"###(.*?)(?:###|\Z)", re.S)
_NUMBER = re.compile(r"(?<!\w)[-\u2212]\d+|\d+\.\d+|\d+")
"""A whole number, or a negative or decimal one, which numbers no passage. A dash after a word or a
number is not a sign."""
_TAGGED = "<{tag}>(.*?)(?:</{tag}>|\\Z)"


def read_queries(text: str) -> tuple[str, ...]:
    """The queries in `### one; two ###`, or in the whole text if nothing is marked."""
    text = without_reasoning(text)
    marked = _LISTED.search(text)
    parts = (marked[1] if marked else text).replace("\n", ";").split(";")
    return tuple(query for part in parts if (query := " ".join(part.split())))


@dataclass(frozen=True, slots=True)
class Ranking:
    """The numbers of the passages that a reranker chose."""

    chosen: tuple[int, ...]
    """Numbers of existing passages in order, without repetition."""
    valid: bool
    """Whether every number is the number of a passage, and none repeats."""


def read_ranking(text: str, count: int) -> Ranking:
    """Reads the numbers in a text, which choose among `count` passages numbered from 0."""
    numbers = _NUMBER.findall(without_reasoning(text))
    known = [
        int(n) for n in numbers if n.isdecimal() and len(n.lstrip("0")) < 10 and int(n) < count
    ]
    chosen = tuple(dict.fromkeys(known))
    return Ranking(chosen, valid=len(chosen) == len(numbers))


def read_tagged(text: str, tag: str) -> str | None:
    """The text inside `<tag>...</tag>`; None if the tag is missing."""
    match = re.search(_TAGGED.format(tag=re.escape(tag)), without_reasoning(text), re.S)
    return match[1].strip() if match else None


def count_words(text: str) -> int:
    """Number of words, separated by white space."""
    return len(text.split())


def within(text: str, limit: int) -> bool:
    """Whether a text has between one and `limit` words."""
    return 0 < count_words(text) <= limit


def merged(lists: Sequence[Sequence[Entry]]) -> list[Entry]:
    """Returns all entries without repetition: the first entry of every list, then the second entry
    of every list, and so on."""
    longest = max((len(entries) for entries in lists), default=0)
    interleaved = [entries[n] for n in range(longest) for entries in lists if n < len(entries)]
    return list(dict.fromkeys(interleaved))
