"""Items and rewards of the pairs: one agent names a colour of a pair, the next names the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

COLOURS = ("red", "green", "blue", "gold", "pink", "grey")


def items(split: str) -> Sequence[str]:
    """Ordered pairs such as "red and blue". Every fourth is held out."""
    pairs = [(a, b) for a in COLOURS for b in COLOURS if a != b]
    held_out = pairs[::4]
    chosen = held_out if split == "test" else [pair for pair in pairs if pair not in held_out]
    return [f"{a} and {b}" for a, b in chosen]


def grade(item: str, result: Mapping[str, str]) -> float:
    """Half of the team's reward for a colour of the pair, half for both."""
    first, second = result["first"].strip(), result["second"].strip()
    pair = set(item.split(" and "))
    return ((first in pair) + ({first, second} == pair)) / 2
