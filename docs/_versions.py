"""The list of versions beside sites that are built into `.../versions/VERSION`."""

from __future__ import annotations

import json
import re
from pathlib import Path

FOLDER = "versions"


def is_versioned(site: Path) -> bool:
    """Whether this site is one of several in a folder of versions."""
    return site.parent.name == FOLDER


def write_versions(folder: Path) -> list[str]:
    """Writes `versions.json`, which the theme's menu reads, and a page that opens the newest.

    Returns the versions, newest first.
    """
    versions = sorted((page.parent.name for page in folder.glob("*/index.html")), key=_order)[::-1]
    entries = [{"version": one, "title": one, "aliases": []} for one in versions]
    (folder / "versions.json").write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")
    (folder / "index.html").write_text(
        '<!doctype html>\n<meta charset="utf-8">\n<title>colearn</title>\n'
        f'<meta http-equiv="refresh" content="0; url={versions[0]}/">\n'
        f'<a href="{versions[0]}/">colearn {versions[0]}</a>\n',
        encoding="utf-8",
    )
    return versions


def _order(version: str) -> tuple[tuple[int, ...], bool, str]:
    """Numbers as numbers; a release after its own pre-releases."""
    release = re.match(r"\d+(?:\.\d+)*", version)
    numbers = tuple(map(int, release[0].split("."))) if release else ()
    rest = version[release.end() :] if release else version
    return numbers, not rest, rest
