"""Counts of what a device would pay for, each with its place: kernels, copies to it, waits."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from types import FrameType

SQUARE = 65
"""Equal last dimensions from which a tensor counts as one of tokens squared: more than the width of
the cases' models."""

Places = Counter[str]


@dataclass
class Costs:
    """Counts by place, a line of colearn or of a package that it calls."""

    kernels: Places = field(default_factory=Counter)
    operators: Counter[str] = field(default_factory=Counter)
    """Kernels by operator."""
    copies: Places = field(default_factory=Counter)
    """Copies from the host to a device."""
    waits: Places = field(default_factory=Counter)
    """Reads of device memory by the host, and operators whose size depends on values."""
    weight_casts: Places = field(default_factory=Counter)
    """Elements of parameters that were converted to another type."""
    squares: Places = field(default_factory=Counter)
    """Most bytes of one tensor whose last two dimensions are equal, and at least SQUARE."""

    def minus(self, other: Costs) -> dict[str, dict[str, int]]:
        """By kind of count: the places where this has more than `other`, and how many more."""
        difference: dict[str, dict[str, int]] = {}
        for kind in fields(self):
            more, fewer = getattr(self, kind.name), getattr(other, kind.name)
            difference[kind.name] = {p: more[p] - fewer[p] for p in more if more[p] != fewer[p]}
        return difference


_counting: list[Costs] = []


def current() -> list[Costs]:
    """The counts that are being made, the outer ones first."""
    return _counting


@contextmanager
def counted() -> Iterator[Costs]:
    costs = Costs()
    _counting.append(costs)
    try:
        yield costs
    finally:
        _counting.remove(costs)


def place() -> str:
    """The innermost line of colearn, and that of the package in which it calls an operator."""
    lines: list[str] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        installed = "/site-packages/" in name
        own = "/colearn/" in name and not installed
        if own or (installed and not lines and "/site-packages/torch/" not in name):
            short = name.rpartition("/colearn/" if own else "/site-packages/")[2]
            lines.append(f"{short}:{frame.f_lineno} {frame.f_code.co_name}")
        if own:
            break
        frame = frame.f_back
    return " < ".join(lines)
