"""Cache folder for files that colearn builds on this machine."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """Return $COLEARN_CACHE if it is set, else the folder colearn/ in the user's cache folder."""
    chosen = os.environ.get("COLEARN_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "colearn"
