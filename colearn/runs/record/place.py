"""Checks that a folder is writable, and locks it for one process."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from colearn.errors import CheckpointError, ConfigError

LOCK = ".lock"
_SECONDS = 5.0
"""Number of seconds to wait for a lock, because the process that holds it may be ending."""


def named_folder(path: str | Path, option: str = "--out") -> Path:
    """Return the folder for a path that a caller passed. `~` at its beginning is the home folder;
    shells do not replace it in `--out=~/run`.

    Errors: ConfigError if the value is not a path, if it is empty (an empty path would mean the
    current folder), or if it begins with `~` and the name of an unknown user.
    """
    if not isinstance(path, str | Path):
        raise ConfigError(f"{option}: must be a path, got {path!r}")
    if not str(path).strip():
        raise ConfigError(f"{option}: is empty; name a folder, or '.' for the current one")
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise ConfigError(f"{option} {path}: no such user's home; write the whole path") from None


def check_place(folder: Path, option: str = "--out") -> None:
    """Errors: ConfigError if `folder` is a file, or cannot be created or written."""
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

    Errors: CheckpointError if another process holds the lock.
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
    """Create `folder` and lock it for the duration of a block. Errors: as `lock_folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    with lock_folder(folder):
        yield
