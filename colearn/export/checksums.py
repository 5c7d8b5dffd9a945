"""Integrity of an exported folder: SHA256SUMS of all files."""

from __future__ import annotations

from pathlib import Path

from colearn.errors import ConfigError
from colearn.record.checksums import damages


def verify(folder: str | Path) -> None:
    """Check that a folder holds what was exported: every file whole, and no file beside them.

    Errors: ConfigError naming the first file that is damaged, missing or unknown.
    """
    for damage in damages(Path(folder)):
        raise ConfigError(f"{damage}; copy or export the agent again")
