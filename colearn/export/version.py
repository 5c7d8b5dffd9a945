"""The installed colearn version, with its commit if known."""

from __future__ import annotations

import json
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import colearn


def commit() -> str | None:
    """The commit of the checkout from which colearn runs (with `-dirty` if it has changes) or was
    installed; None for a release."""
    root = Path(colearn.__file__).parents[1]
    git = shutil.which("git")
    if git is not None and (root / ".git").exists():
        result = subprocess.run(
            [git, "-C", str(root), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"],
            capture_output=True,
            text=True,
        )
        if result.returncode == 0:
            return result.stdout.strip()
    try:
        origin = distribution("colearn-llm").read_text("direct_url.json")
    except PackageNotFoundError:
        return None
    commit_id: str | None = json.loads(origin or "{}").get("vcs_info", {}).get("commit_id")
    return commit_id
