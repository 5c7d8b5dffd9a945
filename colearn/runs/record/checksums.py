"""Writes and verifies SHA256SUMS of a folder and its subfolders, as `sha256sum` does."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from colearn.errors import ConfigError

SUMS = "SHA256SUMS"

_LINE = re.compile(r"([0-9a-f]{64}) [ *]((?:[^/\\\x00]+/)*[^/\\\x00]+)")


def write_checksums(folder: Path) -> None:
    """Write the checksums of all files below `folder`, for `sha256sum -c`, too."""
    lines = [f"{_sum(folder / name)}  {name}\n" for name in _names(folder)]
    (folder / SUMS).write_text("".join(lines), encoding="utf-8")


def damages(folder: Path) -> Iterator[str]:
    """One line for each damaged, missing or unknown file.

    Hidden files, such as those of version control and hubs, are ignored.
    """
    path = folder / SUMS
    if not path.is_file():
        yield f"{path}: no such file"
        return
    sums: dict[str, str] = {}
    for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), start=1):
        match = _LINE.fullmatch(line)
        if match is None or not _inside(match[2]):
            yield f"{path}:{number}: not a line of sha256sum"
            return
        sums[match[2]] = match[1]
    for name, expected in sums.items():
        if not (folder / name).is_file():
            yield f"{folder / name}: missing"
        elif _sum(folder / name) != expected:
            yield f"{folder / name}: damaged (its SHA-256 is not that of {SUMS})"
    for name in _names(folder):
        if name not in sums:
            yield f"{folder / name}: not in {SUMS}; if it is yours, remove it"


def verify(folder: str | Path) -> None:
    """Check that an exported folder contains exactly its files, all undamaged.

    Errors: ConfigError naming the first file that is damaged, missing or unknown.
    """
    for damage in damages(Path(folder)):
        raise ConfigError(f"{damage}; copy or export the agent again")


def _inside(name: str) -> bool:
    """Whether a path from the untrusted checksum file stays inside the folder."""
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts


def _names(folder: Path) -> list[str]:
    """Names of the files below a folder, except hidden files and the checksum file."""
    files = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()]
    visible = [path for path in files if not any(part.startswith(".") for part in path.parts)]
    return sorted(path.as_posix() for path in visible if path.as_posix() != SUMS)


def _sum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
