"""Checks that a folder can be written, and locks it for one process."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from colearn.errors import CheckpointError, ConfigError

LOCK = ".lock"
_SECONDS = 5.0
"""Seconds to wait for the lock of a process that is ending."""


def named_folder(given: str | Path, option: str = "--out") -> Path:
    """The folder of a name that a caller gave.

    Errors: ConfigError for a value that is no path, and for an empty name, which would be the
    current folder.
    """
    if not isinstance(given, str | Path):
        raise ConfigError(f"{option}: must be a path, got {given!r}")
    if not str(given).strip():
        raise ConfigError(f"{option}: is empty; name a folder, or '.' for the current one")
    return Path(given)


def check_place(folder: Path, option: str = "--out") -> None:
    """Errors: ConfigError where `folder` is a file, or cannot be made or written."""
    try:
        if folder.exists() and not folder.is_dir():
            raise ConfigError(f"{option} {folder}: is a file; name a folder")
        above = next(place for place in (folder, *folder.absolute().parents) if place.exists())
        with tempfile.TemporaryDirectory(prefix=".colearn-", dir=above):
            pass
    except OSError as error:
        raise ConfigError(
            f"{option} {folder}: {error.strerror or error}; name a folder that can be written"
        ) from None


def lock_folder(folder: Path) -> FileLock:
    """Lock `folder` for this process, until the lock is released or the process ends.

    Errors: CheckpointError where another process holds it.
    """
    lock = FileLock(folder / LOCK)
    try:
        lock.acquire(timeout=_SECONDS)
    except Timeout:
        raise CheckpointError(
            f"--out {folder}: another process is at work in this folder; wait for it, end it, or "
            "name another folder"
        ) from None
    return lock


@contextmanager
def held_folder(folder: Path) -> Iterator[None]:
    """`lock_folder` for a block; makes the folder. Errors: as there."""
    folder.mkdir(parents=True, exist_ok=True)
    with lock_folder(folder):
        yield
