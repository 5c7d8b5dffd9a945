"""The three-dimensional world of HouseBuild: commands, blocks and spiders.

Commands that the paper names follow Minecraft's rules; the block map is plain Python.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..blocks import AIR, cell_name, command_lines

SPIDER_HP, PLAYER_HP, PLAYER_ATTACK = 6, 5, 6
"""Health points of a spider and of the players, and the highest damage of one `/damage`."""
Cell = tuple[int, int, int]
"""(x, y, z) from 0: x to the right, y up, z to the back."""


@dataclass(frozen=True, slots=True)
class Box:
    """All cells between two corners, both included, filled with one block."""

    low: Cell
    high: Cell
    block: str

    @property
    def volume(self) -> int:
        """The number of cells."""
        return math.prod(high - low + 1 for low, high in zip(self.low, self.high, strict=True))

    def cells(self) -> Iterator[Cell]:
        """Every cell; x changes slowest."""
        for x in range(self.low[0], self.high[0] + 1):
            for y in range(self.low[1], self.high[1] + 1):
                for z in range(self.low[2], self.high[2] + 1):
                    yield x, y, z


@dataclass(frozen=True, slots=True)
class Attack:
    """Damage to the first living spiders."""

    damage: float
    """Health points that each hit spider loses."""
    targets: int | None
    """Number of spiders that are hit; None means all."""


@dataclass(frozen=True, slots=True)
class PlacedBlock:
    """One cell of the world that is not air."""

    cell: Cell
    name: str
    owner: int
    """Number (from 0) of the agent that placed the block last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRules:
    """The limits of one agent in one turn."""

    size: Cell
    """The numbers of cells along x, y and z."""
    resources: Mapping[str, int]
    """Number of cells of each solid block that the agent may fill; air is free."""
    commands: int
    """Maximum number of commands; later ones are rejected."""
    setblock: bool
    damage: bool
    any_kill: bool
    """Whether `/kill` kills all spiders regardless of its argument."""
    short: bool
    """Whether `a1-1 block`, `a1-1 b1-1 block` and `kill` are accepted as commands too."""


@dataclass(frozen=True, slots=True)
class Commands:
    """The commands of one agent, in order, and the number of rejected lines."""

    boxes: tuple[Box, ...]
    attacks: tuple[Attack, ...]
    rejected: int


_NUMBER = r"\s+(-?[0-9]{1,6})"
_BLOCK = r"\s+(?:minecraft:)?([a-z0-9_]+)(?:\s+(.*))?$"
_SETBLOCK = re.compile(f"/setblock{_NUMBER * 3}{_BLOCK}")
_FILL = re.compile(f"/fill{_NUMBER * 6}{_BLOCK}")
_NAME = r"([a-z]{1,2}[0-9]{1,3})-([0-9]{1,3})"
_SHORT = re.compile(rf"{_NAME}(?:\s+{_NAME})?{_BLOCK}")
_SELECTOR = r"@e\[([^\]]*)\]"
_DAMAGE = re.compile(rf"/damage\s+{_SELECTOR}\s+([0-9]{{1,6}}(?:\.[0-9]{{1,6}})?)(?:\s|$)")
_KILL = re.compile(rf"/kill(?:\s+{_SELECTOR}(?:\s.*)?)?$")
_OTHER_MODE = re.compile(r"(?:keep|hollow|outline)\b|replace\s+\S")
"""Modes of Minecraft's `/fill` whose result differs from that of the plain command."""


def parse(text: str, rules: TurnRules) -> Commands:
    """The commands of one agent.

    Each line holds one command; `TurnRules` defines the commands. Bullets, code fences, empty
    lines, a `minecraft:` prefix and words after the block or the selector are tolerated. Every
    other line is rejected and changes nothing. Rejected lines are prose, unknown commands and
    blocks, relative or fractional coordinates, and corners outside the box. The modes keep, hollow,
    outline and a filtered replace are rejected too, and so are selectors that do not select
    spiders, and `/damage` on more than one spider or above the player's attack. A fill that exceeds
    the remaining cells of a block is rejected, as are all commands beyond the limit.
    """
    resources = dict(rules.resources)
    boxes: list[Box] = []
    attacks: list[Attack] = []
    rejected = 0
    for line in command_lines(text):
        command = _command(line, rules) if len(boxes) + len(attacks) < rules.commands else None
        if isinstance(command, Attack):
            attacks.append(command)
        elif command is None or command.volume > resources.get(command.block, math.inf):
            rejected += 1
        else:
            boxes.append(command)
            if command.block != AIR:
                resources[command.block] -= command.volume
    return Commands(tuple(boxes), tuple(attacks), rejected)


def _command(line: str, rules: TurnRules) -> Box | Attack | None:
    if line.startswith(("/kill", "/damage", "kill")):
        return _attack(line, rules)
    corners = _corners(line, rules)
    if corners is None:
        return None
    first, second, block, rest = corners
    known = block == AIR or block in rules.resources
    low = (min(first[0], second[0]), min(first[1], second[1]), min(first[2], second[2]))
    high = (max(first[0], second[0]), max(first[1], second[1]), max(first[2], second[2]))
    inside = min(low) >= 0 and all(far < n for far, n in zip(high, rules.size, strict=True))
    return Box(low, high, block) if known and inside and not _OTHER_MODE.match(rest) else None


def _corners(line: str, rules: TurnRules) -> tuple[Cell, Cell, str, str] | None:
    match = _FILL.match(line)
    if match is not None:
        x1, y1, z1, x2, y2, z2 = (int(word) for word in match.groups()[:6])
        return (x1, y1, z1), (x2, y2, z2), match[7], match[8] or ""
    match = _SETBLOCK.match(line) if rules.setblock else None
    if match is not None:
        cell = (int(match[1]), int(match[2]), int(match[3]))
        return cell, cell, match[4], match[5] or ""
    match = _SHORT.match(line) if rules.short else None
    if match is None:
        return None
    first = _named(match[1], match[2])
    second = first if match[3] is None else _named(match[3], match[4])
    return first, second, match[5], match[6] or ""


def _attack(line: str, rules: TurnRules) -> Attack | None:
    if rules.short and line.split()[0] == "kill":
        return Attack(math.inf, None)
    if rules.any_kill:
        return Attack(math.inf, None) if line.split()[0] == "/kill" else None
    match = _DAMAGE.match(line) if rules.damage else None
    if match is not None:
        amount = float(match[2])
        fits = _spiders(match[1]) == (True, 1) and amount <= PLAYER_ATTACK
        return Attack(amount, 1) if fits else None
    match = _KILL.match(line)
    if match is None:
        return None
    selects, limit = (True, None) if match[1] is None else _spiders(match[1])
    return Attack(math.inf, limit) if selects else None


def _spiders(selector: str) -> tuple[bool, int | None]:
    """Whether a selector such as `type=spider,limit=1,...` selects spiders, and its limit."""
    pairs = [part.partition("=") for part in selector.split(",")]
    arguments = {key.strip(): value.strip() for key, _, value in pairs}
    limit = arguments.get("limit")
    if limit is not None and (not re.fullmatch("[0-9]{1,6}", limit) or int(limit) == 0):
        return False, None
    spiders = arguments.get("type", "").removeprefix("minecraft:") == "spider"
    return spiders, None if limit is None else int(limit)


def cell_word(cell: Cell) -> str:
    """Writes a cell as one word: column and row from above as on a chess board, then the layer,
    from 1."""
    x, y, z = cell
    return f"{cell_name((x, z))}-{y + 1}"


def _named(square: str, layer: str) -> Cell:
    letters = square.rstrip("0123456789")
    column = 0
    for letter in letters:
        column = 26 * column + ord(letter) - ord("a") + 1
    return column - 1, int(layer) - 1, int(square[len(letters) :]) - 1


def build(commands: Sequence[Commands]) -> tuple[PlacedBlock, ...]:
    """Runs each agent's commands in turn in an empty world; later agents overwrite earlier ones."""
    world: dict[Cell, PlacedBlock] = {}
    for owner, agent_commands in enumerate(commands):
        for box in agent_commands.boxes:
            for cell in box.cells():
                if box.block == AIR:
                    world.pop(cell, None)
                else:
                    world[cell] = PlacedBlock(cell, box.block, owner)
    return tuple(world[cell] for cell in sorted(world, key=upward))


def upward(cell: Cell) -> Cell:
    """Sort key that orders cells by layer, row and column."""
    x, y, z = cell
    return y, z, x


def living(attacks: Iterable[Attack], spiders: Sequence[int], health: int) -> tuple[int, ...]:
    """The attack values of the spiders that survive a turn. Each spider has `health` points at the
    start of the turn."""
    hit_points = [float(health) for _ in spiders]
    for attack in attacks:
        alive = [number for number, points in enumerate(hit_points) if points > 0]
        for number in alive[: attack.targets]:
            hit_points[number] -= attack.damage
    return tuple(value for value, points in zip(spiders, hit_points, strict=True) if points > 0)
