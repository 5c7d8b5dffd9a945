"""The syntax trees of the library's sources, parsed once in a process of tests."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("colearn", "algorithms", "tasks")


@cache
def source_trees() -> dict[Path, ast.Module]:
    """By path from the repository's root."""
    files = (path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py")))
    return {path.relative_to(ROOT): ast.parse(path.read_text(), str(path)) for path in files}
