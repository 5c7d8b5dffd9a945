"""SHA256SUMS of a folder, in the format of `sha256sum`."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from colearn.errors import ConfigError

SUMS = "SHA256SUMS"

_LINE = re.compile(r"([0-9a-f]{64}) [ *]([^/\\\x00]+)")


def write_checksums(folder: Path) -> None:
    """Sums of every file in `folder`, by name; `sha256sum -c SHA256SUMS` checks them, too."""
    lines = [f"{_sum(path)}  {path.name}\n" for path in _files(folder)]
    (folder / SUMS).write_text("".join(lines), encoding="utf-8")


def verify(folder: str | Path) -> None:
    """Check that a folder holds what was exported: every file whole, and no file beside them.

    Hidden files, which version control and hubs leave, are passed over.
    Errors: ConfigError naming the first file that is damaged, missing or unknown.
    """
    folder = Path(folder)
    path = folder / SUMS
    if not path.is_file():
        raise ConfigError(f"{path}: no such file; export the agent again")
    sums: dict[str, str] = {}
    for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), start=1):
        found = _LINE.fullmatch(line)
        if found is None:
            raise ConfigError(f"{path}:{number}: not a line of sha256sum; export the agent again")
        sums[found[2]] = found[1]
    for name, expected in sums.items():
        if not (folder / name).is_file():
            raise ConfigError(f"{folder / name}: missing; copy or export the agent again")
        if _sum(folder / name) != expected:
            raise ConfigError(
                f"{folder / name}: damaged (its SHA-256 is not that of {SUMS}); copy or export the "
                "agent again"
            )
    for file in _files(folder):
        if file.name not in sums:
            raise ConfigError(f"{file}: not in {SUMS}, so no part of the agent; remove it")


def _files(folder: Path) -> list[Path]:
    found = [path for path in folder.iterdir() if path.is_file()]
    return sorted(p for p in found if p.name != SUMS and not p.name.startswith("."))


def _sum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
