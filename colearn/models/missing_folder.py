"""Handles model paths that are not folders. Raises an error if the path cannot be a hub name;
otherwise prints a note."""

from __future__ import annotations

import difflib
import os
from functools import lru_cache

from colearn.errors import ConfigError
from colearn.text.notes import note


def refuse_missing_folder(path: str, field: str) -> None:
    """Errors: ConfigError for a path that is neither a folder nor a hub name, or that is close to
    the name of a local folder. A request to the hub for such a path would fail. Without a network
    connection, the request would fail only after a timeout."""
    if os.path.isdir(path):
        return
    above, name = os.path.split(path)
    neighbours = [folder for folder in _folders(above or ".") if folder not in (name, "")]
    near = difflib.get_close_matches(name, neighbours, n=1, cutoff=0.8)
    local = path.startswith((".", "/", "~")) or path.count("/") > 1
    if local or near:
        remedy = "give a model's folder or hub name"
        if near:
            remedy = f"did you mean '{os.path.join(above, near[0])}'?"
        raise ConfigError(f"{field}: no folder {path[:200]}; {remedy}")
    _say_asking(path)


@lru_cache(maxsize=64)
def _say_asking(path: str) -> None:
    """Print a note, once per path, that a model is requested from the hub; the request can be
    slow."""
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.constants import is_offline_mode
    from huggingface_hub.errors import HFValidationError

    try:
        cached = isinstance(try_to_load_from_cache(path, "config.json"), str)
    except HFValidationError:
        return  # no name of a hub, which the reader reports
    if not cached and not is_offline_mode():
        note(f"there is no folder {path[:200]}; asks the hub for a model of this name")


def _folders(above: str) -> list[str]:
    try:
        return [entry.name for entry in os.scandir(above) if entry.is_dir()]
    except OSError:
        return []
