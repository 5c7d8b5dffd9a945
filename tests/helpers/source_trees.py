"""The syntax trees of the library's sources. A caller keeps what it reads of them and no tree: a
million nodes that live on are searched for garbage in every later run of the process."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("colearn", "algorithms", "tasks")


def source_files(*folders: str) -> list[Path]:
    """The files of some folders, by default of all, from the repository's root."""
    found = (
        path for folder in folders or FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))
    )
    return [path.relative_to(ROOT) for path in found]


def source_trees(*folders: str) -> Iterator[tuple[Path, ast.Module]]:
    """The path and the tree of each file of `source_files`."""
    for path in source_files(*folders):
        yield path, ast.parse((ROOT / path).read_text(), str(path))
