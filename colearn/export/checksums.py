"""Verifies an exported folder against the folder's SHA256SUMS."""

from __future__ import annotations

from pathlib import Path

from colearn.errors import ConfigError
from colearn.record.checksums import damages


def verify(folder: str | Path) -> None:
    """Check that a folder contains exactly the exported files, all undamaged.

    Errors: ConfigError naming the first file that is damaged, missing or unknown.
    """
    for damage in damages(Path(folder)):
        raise ConfigError(f"{damage}; copy or export the agent again")
