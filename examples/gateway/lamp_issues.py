"""Items and rewards of the coders: a lamp of a room must have a colour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

COLOURS = ("red", "green", "blue")
ROOMS = (
    *("hall", "attic", "porch", "cellar", "loft", "den", "study", "barn", "shed"),
    *("gate", "yard", "well"),
)


def items(split: str) -> Sequence[dict[str, str]]:
    """Issues: a room and the colour of its lamp. The last three rooms are held out."""
    rooms = ROOMS[9:] if split == "test" else ROOMS[:9]
    return [{"room": room, "colour": colour} for room in rooms for colour in COLOURS]


def grade(item: Mapping[str, str], result: Mapping[str, str]) -> float:
    """Half of the team's reward for the coder's lamp, half for the lamp after the review."""
    return sum(result[agent] == item["colour"] for agent in ("coder", "reviewer")) / 2
