"""Items and rewards of the relay: a lookout sees a scene, a painter is told what it said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

COLOURS = ("red", "green", "blue", "gold")
PLACES = ("hill", "barn", "lake", "mill", "road", "well", "gate", "tree")


def items(split: str) -> Sequence[str]:
    """Scenes such as "red hill". Each colour has two held-out places, so every word is trained."""
    held_out = {(c, (2 * c + n) % len(PLACES)) for c in range(len(COLOURS)) for n in range(2)}
    return [
        f"{colour} {place}"
        for c, colour in enumerate(COLOURS)
        for p, place in enumerate(PLACES)
        if ((c, p) in held_out) == (split == "test")
    ]


def grade(item: str, result: Mapping[str, str]) -> float:
    """Half of the team's reward for each agent that says the scene's colour."""
    colour = item.split()[0]
    return sum(result[agent].strip() == colour for agent in ("lookout", "painter")) / 2
