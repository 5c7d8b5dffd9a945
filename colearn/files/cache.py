"""Cache folder for files that colearn builds on this machine."""

from __future__ import annotations

import os
from pathlib import Path

from colearn.errors import ConfigError


def cache_folder() -> Path:
    """Return $COLEARN_CACHE if it is set, else the folder colearn/ in the user's cache folder."""
    chosen = os.environ.get("COLEARN_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "colearn"


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
