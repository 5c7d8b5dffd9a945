"""Prompts and feedback of HouseBuild, in full and compact form, and a text rendering."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..blocks import AIR
from .houses import House
from .shapes import in_order, pieces, rectangles
from .world import PLAYER_HP, Box, Cell, PlacedBlock, cell_word

COMPACT_STEP = 0.25
COMPACT_BOUND = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BuilderFields:
    """Prompt fields about one agent."""

    number: int
    """The agent's number, from 0."""
    name: str
    agents: int
    limit: int
    """Maximum number of commands per turn."""
    resources: Mapping[str, int]
    """Number of cells of each block that the agent may fill in one turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Threat:
    """Prompt fields about the spiders."""

    attacks: tuple[int, ...]
    command: str
    """The instruction for attacks."""


Hint = tuple[str, tuple[Box, ...]]
"""A heading in the feedback, and the boxes listed under the heading."""


def full_prompt(
    house: House, seat: BuilderFields, threat: Threat, *, resource_section: bool, show_limit: bool
) -> str:
    """The paper's first prompt (E.3). The resources follow each block or form a separate
    section."""
    width, height, depth = house.size
    lines = [
        f"You are Player {seat.number + 1} in a {seat.agents}-person Minecraft building team. "
        "You will place SOME of the blocks for the final build. Output must be Minecraft commands "
        "only (no markdown, no code fences, no extra text).",
        "",
        "Task: Build the 3D structure from the provided y-axis slices.",
        "",
        "Available blocks (use ONLY these):",
    ]
    if resource_section:
        lines += [f"- {name}" for name in (*seat.resources, AIR)]
        lines += ["", "Resource limits per agent:"]
        lines += [f"- {name}: {count}" for name, count in seat.resources.items()]
    else:
        lines += [f"- {name} (at most {count})" for name, count in seat.resources.items()]
        lines.append(f"- {AIR}")
    lines += [
        "",
        "Layers (ascending WORLD y). Each layer is a set of rectangles in WORLD (x, z) coords:",
        "- Format: {(x1, y1, z1, x2, y2, z2 block_id), (x1, y1, z1, x2, y2, z2 block_id)}",
    ]
    boxes = rectangles(dict(house.blocks))
    for y in range(height):
        layer = ", ".join(_corners(box, box.block) for box in boxes if box.low[1] == y)
        lines.append(f"- y={y}: {{{layer}}}")
    lines += [
        "",
        "WORLD bbox (inclusive):",
        "- from: [0, 0, 0]",
        f"- to: [{width - 1}, {height - 1}, {depth - 1}]",
    ]
    if threat.attacks:
        lines += ["", _threat_check(threat)]
    lines += [
        "",
        "Constraints:",
        "- Output ONLY Minecraft commands, one per line.",
        "- Allowed commands: /fill and /kill",
        "- Fill format: /fill x1 y1 z1 x2 y2 z2 block",
        "- Use absolute integer coordinates only (no ~).",
        "- Use ONLY blocks from the legend.",
        "- Every coordinate must be within the bbox.",
    ]
    if show_limit:
        lines.append(f"- At most {seat.limit} commands.")
    return "\n".join(lines)


def _threat_check(threat: Threat) -> str:
    return (
        f"Threat check: There are {len(threat.attacks)} spiders nearby; you have "
        f"{PLAYER_HP} HP. Spider attack list: {list(threat.attacks)}, total damage "
        f"dmg={sum(threat.attacks)}. If you want to kill them, output the attack command: "
        f"{threat.command}. All other commands should be normal building commands."
    )


def _corners(box: Box, block: str) -> str:
    numbers = ", ".join(map(str, (*box.low, *box.high)))
    return f"({numbers} {block})" if block else f"({numbers})"


def compact_prompt(house: House, seat: BuilderFields, threat: Threat) -> str:
    """The first prompt as words separated by single spaces: the size, the house in pieces that one
    agent can build alone within its resources, the agent's limits, and the spiders."""
    lines = ["house " + " ".join(map(str, house.size))]
    lines += [short_command(box) for box in pieces(house, seat.agents)]
    resources = " ".join(f"{name} {count}" for name, count in seat.resources.items())
    lines.append(f"you {seat.name} max {seat.limit} {resources}")
    if threat.attacks:
        attacks = " ".join(map(str, threat.attacks))
        lines.append(f"spiders {attacks} damage {sum(threat.attacks)} hp {PLAYER_HP}")
    return "\n".join(lines)


def short_command(box: Box) -> str:
    """Writes a box as in the compact prompt: one cell or two corners, and the block."""
    corners = (box.low,) if box.low == box.high else (box.low, box.high)
    return " ".join((*map(cell_word, corners), box.block))


def long_command(box: Box) -> str:
    """A box as a `/fill` command."""
    return " ".join(("/fill", *map(str, (*box.low, *box.high)), box.block))


def position_hints(blocks: Sequence[PlacedBlock], house: House) -> tuple[Hint, ...]:
    """Lists missing blocks and extra blocks; the lists are the same for all agents."""
    return (
        ("missing", rectangles(_lacking(blocks, dict(house.blocks)))),
        ("extra", _outside(blocks, house)),
    )


def _lacking(blocks: Sequence[PlacedBlock], target: Mapping[Cell, str]) -> dict[Cell, str]:
    built = {block.cell: block.name for block in blocks}
    return {cell: name for cell, name in target.items() if built.get(cell) != name}


def _outside(blocks: Sequence[PlacedBlock], house: House) -> tuple[Box, ...]:
    target = dict(house.blocks)
    return in_order(rectangles({b.cell: AIR for b in blocks if b.cell not in target}))


_HEADINGS = {
    "missing": "Still missing",
    "extra": "Blocks outside the house",
}


def full_feedback(
    hints: Sequence[Hint],
    *,
    turn: int,
    horizon: int,
    reward: float,
    highest: float,
    alive: int,
    threat: Threat,
    damage: int,
) -> str:
    """The simulated player's feedback before every turn after the first; `turn` counts from 1."""
    lines = [f"Turn {turn} of {horizon}. Reward of the last build: {reward:.2f} / {highest:.2f}."]
    for name, boxes in hints:
        corners = ", ".join(_corners(box, "" if name == "extra" else box.block) for box in boxes)
        lines.append(f"{_HEADINGS[name]}: {corners or 'none'}.")
    if hints and threat.attacks:
        health = max(0, PLAYER_HP - damage)
        lines.append(
            f"{alive} of {len(threat.attacks)} spiders attacked: {health} of {PLAYER_HP} HP "
            "were left. They come back each turn."
        )
    lines.append(
        "Every turn starts from an empty world: output all your commands again, one per line."
    )
    return "\n".join(lines)


def compact_feedback(hints: Sequence[Hint], *, reward: float, alive: int) -> str:
    """Returns one line with the reward, rounded to quarters within [-2, 2], and then each heading
    with its boxes."""
    bounded = min(max(reward, -COMPACT_BOUND), COMPACT_BOUND)
    quarters = round(bounded / COMPACT_STEP) * COMPACT_STEP
    words = [f"reward {quarters:g}"]
    words += [" ".join((name, *map(short_command, boxes))) for name, boxes in hints if boxes]
    if hints and alive:
        words.append(f"spiders {alive}")
    return " ".join(words)


def picture(house: House, blocks: Sequence[PlacedBlock]) -> list[str]:
    """Shows the house, the build and the owners' numbers (from 1) side by side. Layers are listed
    from the ground up, and a layer's rows from the front. The last line lists the letter of each
    block."""
    target = dict(house.blocks)
    built = {block.cell: block.name for block in blocks}
    letter = _letters([*target.values(), *built.values()])
    owner = {block.cell: str((block.owner + 1) % 10) for block in blocks}
    marks = (
        {cell: letter[name] for cell, name in target.items()},
        {cell: letter[name] for cell, name in built.items()},
        owner,
    )
    width, height, depth = house.size
    lines = []
    for y in range(height):
        lines.append(f"y={y}")
        for z in range(depth):
            cells = [(x, y, z) for x in range(width)]
            columns = ("".join(mark.get(cell, ".") for cell in cells) for mark in marks)
            lines.append("   ".join(columns))
    return [*lines, ", ".join(f"{mark} {name}" for name, mark in letter.items())]


def _letters(names: Sequence[str]) -> dict[str, str]:
    """A letter for each block: the first letter of its name that is free, else any free letter."""
    letters: dict[str, str] = {}
    for name in dict.fromkeys(names):
        spare = (*name, *"abcdefghijklmnopqrstuvwxyz0123456789")
        free = (mark for mark in spare if mark.isalnum() and mark not in letters.values())
        letters[name] = next(free, "?")
    return letters
