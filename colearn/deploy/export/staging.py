"""Writes several folders atomically: all are staged, then all or none are renamed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from safetensors import SafetensorError

from colearn.errors import ConfigError, is_disk_error, reason_of

from .manifest import MANIFEST


@contextmanager
def staged(
    to: Path, names: Sequence[str], *, overwrite: bool, marker: str = MANIFEST
) -> Iterator[dict[str, Path]]:
    """Context that creates one empty folder for each of `names`. When the block ends, the folders
    are renamed to `to`/NAME. If the block fails, they are removed.

    Errors: ConfigError, before anything is created, for an invalid folder name, a target that
    exists (with `overwrite`: a target without the file `marker`), or a location that cannot be
    written.
    """
    for name in names:
        _check(to, name, overwrite, marker)
    new_folders = [folder for folder in (to, *to.parents) if not folder.exists()]
    asides = {name: to / f".{name}.partial" for name in names}
    try:
        try:
            for aside in asides.values():
                shutil.rmtree(aside, ignore_errors=True)
                aside.mkdir(parents=True)
        except OSError as error:
            raise _unwritable(to, error) from error
        yield asides
        for name, aside in asides.items():
            _replace(aside, to / name)
    except OSError as error:
        elsewhere = error.filename is not None and not Path(error.filename).is_relative_to(to)
        if elsewhere or not is_disk_error(error):  # such as a base model's file
            raise
        raise _unwritable(to, error) from error
    except SafetensorError as error:
        if "I/O error" not in str(error):
            raise
        raise _unwritable(to, error) from error
    finally:
        for aside in asides.values():
            shutil.rmtree(aside, ignore_errors=True)
        for folder in new_folders:
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()


def _unwritable(to: Path, error: Exception) -> ConfigError:
    reason = (error.strerror if isinstance(error, OSError) else None) or reason_of(error)
    return ConfigError(f"--to {to}: {reason}; name a folder that can be written and has room")


def _check(to: Path, name: str, overwrite: bool, marker: str) -> None:
    if not name or name != Path(name).name or name.startswith("."):
        raise ConfigError(f"agents.{name}: no name for a folder; rename the agent in its task")
    target = to / name
    if not target.exists():
        return
    if not overwrite:
        raise ConfigError(f"--to {to}: {target} exists; name another folder or give --overwrite")
    if not (target / marker).is_file():
        kind = "agent" if marker == MANIFEST else "critic"
        raise ConfigError(
            f"--to {to}: {target} is no exported {kind} and is not overwritten; name another folder"
        )


def _replace(aside: Path, target: Path) -> None:
    old = target.with_name(f".{target.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if target.exists():
        target.rename(old)
    aside.rename(target)
    shutil.rmtree(old, ignore_errors=True)
