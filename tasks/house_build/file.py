"""Reads houses from a JSON file in the format of CoMLRL's data set: layers of rows of letters."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

from colearn.errors import ConfigError, nearest
from colearn.text.json_value import read_json

from ..blocks import AIR
from .houses import House
from .world import Cell, upward

_KEYS = ("task_id", "inventory", "target_spec", "count", "bbox", "variant")
_SPEC_KEYS = ("type", "size", "layers")


def read_houses(file: str | Path) -> tuple[House, ...]:
    """The houses of a file, which holds a JSON list of objects such as

        {"task_id": "hut",
         "inventory": {"C": "white_concrete", "A": "air"},
         "target_spec": {"type": "y_layers", "size": [2, 1, 2],
                         "layers": [{"y": 0, "rows": ["CC", "CA"]}]}}

    `inventory` maps letters to blocks. A layer's rows run along z, their letters along x; `size`
    gives the number of cells along x, y and z. Optional keys: `count` (cells by letter), `bbox`
    (from and to, starting at the origin, both inclusive, or null) and `variant` (ignored).

    Errors: ConfigError, one line that names the house and the field.
    """
    if not isinstance(file, (str, Path)):
        raise ConfigError(f"task.houses_file: must be a path, got {file!r}; put it in quotes")
    path = Path(file).expanduser()
    try:
        data = read_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"task.houses_file: {path}: {error.strerror}; give a file") from None
    except UnicodeDecodeError:
        raise ConfigError(f"task.houses_file: {path} is no text in UTF-8; fix it") from None
    except ValueError as error:
        raise ConfigError(f"task.houses_file: {path} {error}; fix it") from None
    if not isinstance(data, list) or not data:
        raise ConfigError(f"task.houses_file: {path} must hold a list of houses; write [{{...}}]")
    houses = tuple(_house(entry, f"house {number}") for number, entry in enumerate(data))
    for name, times in Counter(house.name for house in houses).items():
        if times > 1:
            raise ConfigError(f"task.houses_file: task_id '{name}' stands twice; rename one")
    return houses


def _house(entry: Any, location: str) -> House:
    _check_keys(entry, _KEYS, required=_KEYS[:3], location=location)
    name = entry["task_id"]
    if not isinstance(name, str) or not name:
        raise _wrong(location, f"task_id must be text, got {name!r}; put it in quotes")
    location = f"house '{name}'"
    inventory = _inventory(entry["inventory"], location)
    spec = entry["target_spec"]
    _check_keys(spec, _SPEC_KEYS, required=_SPEC_KEYS, location=f"{location}, target_spec")
    if spec["type"] != "y_layers":
        raise _wrong(location, f"type must be 'y_layers', got {spec['type']!r}; no other is known")
    size = _size(spec["size"], location)
    letters = _letters(spec["layers"], size, location)
    for letter in letters.values():
        if letter not in inventory:
            raise _wrong(location, f"letter '{letter}' is not in the inventory; add it there")
    counted = Counter(letters.values())
    count = {letter: counted[letter] for letter in inventory}
    if entry.get("count") not in (None, count):
        raise _wrong(location, f"count must be {count}; fix it or leave it out")
    box = {"from": [0, 0, 0], "to": [n - 1 for n in size]}
    if entry.get("bbox") not in (None, box):
        raise _wrong(location, f"bbox must be {box}; fix it or leave it out")
    blocks = {cell: inventory[letter] for cell, letter in letters.items()}
    solid = sorted((cell for cell in blocks if blocks[cell] != AIR), key=upward)
    if not solid:
        raise _wrong(location, "it is all air; give it a block")
    return House(name, size, tuple((cell, blocks[cell]) for cell in solid))


def _check_keys(
    entry: Any, known: tuple[str, ...], *, required: tuple[str, ...], location: str
) -> None:
    if not isinstance(entry, dict):
        raise _wrong(location, f"must be an object with {', '.join(required)}, got {entry!r}")
    for key in entry:
        if key not in known:
            raise _wrong(location, f"unknown key '{key}'; {nearest(key, known)}")
    for key in required:
        if key not in entry:
            raise _wrong(location, f"'{key}' is missing; add it")


def _inventory(value: Any, location: str) -> dict[str, str]:
    if not isinstance(value, dict) or not value:
        raise _wrong(location, f"inventory must map letters to blocks, got {value!r}")
    inventory = {}
    for letter, block in value.items():
        if len(letter) != 1 or letter.isspace():
            raise _wrong(location, f"inventory: '{letter}' must be one letter; shorten it")
        name = block.removeprefix("minecraft:") if isinstance(block, str) else ""
        if not re.fullmatch("[a-z0-9_]+", name):
            raise _wrong(
                location, f"inventory: {block!r} is no block; write a name like stone_bricks"
            )
        inventory[letter] = name
    return inventory


def _size(value: Any, location: str) -> Cell:
    integers = isinstance(value, list) and all(
        isinstance(n, int) and not isinstance(n, bool) and 1 <= n <= 99 for n in value
    )
    if not integers or len(value) != 3:
        raise _wrong(location, f"size must be three whole numbers from 1 to 99, got {value!r}")
    return value[0], value[1], value[2]


def _letters(layers: Any, size: Cell, location: str) -> dict[Cell, str]:
    """Maps every cell to its letter."""
    width, height, depth = size
    letters: dict[Cell, str] = {}
    if not isinstance(layers, list):
        raise _wrong(location, f"layers must be a list, got {layers!r}")
    for layer in layers:
        _check_keys(layer, ("y", "rows"), required=("y", "rows"), location=f"{location}, layers")
        y, rows = layer["y"], layer["rows"]
        if isinstance(y, bool) or not isinstance(y, int) or not 0 <= y < height:
            raise _wrong(location, f"layer y={y!r} lies outside size {list(size)}; fix one of them")
        if not isinstance(rows, list) or len(rows) != depth:
            raise _wrong(location, f"layer y={y} must have {depth} rows; size is {list(size)}")
        for z, row in enumerate(rows):
            if not isinstance(row, str) or len(row) != width:
                raise _wrong(
                    location, f"layer y={y}, row {z} must have {width} letters, got {row!r}"
                )
            for x, letter in enumerate(row):
                if (x, y, z) in letters:
                    raise _wrong(location, f"layer y={y} stands twice; drop one")
                letters[x, y, z] = letter
    missing = set(range(height)) - {y for _, y, _ in letters}
    if missing:
        raise _wrong(location, f"layer y={min(missing)} is missing; size is {list(size)}")
    return letters


def _wrong(location: str, fault: str) -> ConfigError:
    return ConfigError(f"task.houses_file: {location}: {fault}")
