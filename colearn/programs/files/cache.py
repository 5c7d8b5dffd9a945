"""Cache folder for files that colearn builds on this machine."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock, Timeout

from colearn.errors import ConfigError
from colearn.text.notes import note


def cache_folder() -> Path:
    """Return $COLEARN_CACHE if it is set, else the folder colearn/ in the user's cache folder.

    Errors: ConfigError for a user without a home folder.
    """
    chosen = os.environ.get("COLEARN_CACHE")
    if chosen:
        return Path(chosen)
    caches = os.environ.get("XDG_CACHE_HOME")
    if caches:
        return Path(caches) / "colearn"
    try:
        return Path.home() / ".cache" / "colearn"
    except RuntimeError:  # neither HOME nor an entry in the list of users
        raise ConfigError(
            "COLEARN_CACHE: this user has no home folder for the cache; set it to a folder that "
            "can be written, or set HOME"
        ) from None


def cache_place(name: str) -> Path:
    """Return the path `name` in the cache folder, whose parent folders are created.

    Errors: ConfigError if the parent folders cannot be created.
    """
    place = cache_folder() / name
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"COLEARN_CACHE: cannot make the folder {place.parent} ({error.strerror or error}); "
            "name a folder that can be written"
        ) from None
    return place


def made_once(name: str, what: str, make: Callable[[Path], object]) -> Path:
    """Return the file or folder `name` in the cache. If it is not there, `make` writes it to the
    path that it is given; of several processes, one does so and the others wait. what: what `make`
    makes, for the note that a process waits.

    Errors: as for `cache_place`, and those of `make`, which leave nothing in the cache.
    """
    place = cache_place(name)
    if place.exists():
        return place
    lock = FileLock(f"{place}.lock")
    try:
        lock.acquire(blocking=False)
    except Timeout:
        note(f"waits for {what}, which another process makes")
        lock.acquire()
    try:
        if not place.exists():
            aside = place.with_name(f".partial-{place.name}")
            shutil.rmtree(aside, ignore_errors=True)
            make(aside)
            aside.rename(place)
    finally:
        lock.release()
    return place
