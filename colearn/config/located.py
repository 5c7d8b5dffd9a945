"""Finds the files that a config names by relative paths: beside the config first, then in the
current folder. A record keeps the paths as they were written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

_BARE = ("base", "corpus", "data", "encoder", "from", "graph", "items", "path", "test_data")
"""Keys whose values may name a folder by a bare word."""
_TEXTS = ("system", "prompt")
"""Keys whose values are texts, even where a file has that name."""


def located(data: Mapping[str, Any], folders: Sequence[str]) -> dict[str, Any]:
    """Returns a config's plain data with absolute paths for the files and folders that the config
    names by relative paths, each in the first of `folders` that has it. The section `run` names
    files to write."""

    def absolute(key: str, text: str) -> str:
        if not _is_relative_path(key, text):
            return text
        try:
            paths = (Path(folder) / text for folder in folders)
            return next((str(path.absolute()) for path in paths if path.exists()), text)
        except OSError:  # a name that is too long
            return text

    return {
        key: value if key == "run" else _mapped(value, key, absolute) for key, value in data.items()
    }


def as_written(data: Mapping[str, Any], folders: Sequence[str]) -> dict[str, Any]:
    """Returns a config's plain data with relative paths for the files below the first of
    `folders`."""
    if not folders:
        return dict(data)
    above = f"{Path(folders[0]).absolute()}/"

    def relative(key: str, text: str) -> str:
        return text.removeprefix(above) if text != above else text

    return {
        key: value if key == "run" else _mapped(value, key, relative) for key, value in data.items()
    }


def _mapped(value: Any, key: str, change: Callable[[str, str], str]) -> Any:
    if isinstance(value, str):
        return change(key, value)
    if isinstance(value, Mapping):
        return {
            name: _mapped(inner, key if key == "base" else str(name).rpartition(".")[2], change)
            for name, inner in value.items()
        }
    return [_mapped(inner, key, change) for inner in value] if isinstance(value, list) else value


def _is_relative_path(key: str, text: str) -> bool:
    if not text.strip() or not text.isprintable() or key in _TEXTS or text.startswith(("/", "~")):
        return False
    return "/" in text or bool(Path(text).suffix) or key in _BARE
