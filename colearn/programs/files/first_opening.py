"""Opens untrusted files in a child process with limits before this process opens them. Files with
equal content are checked once.

If the child opens a file within 10 s of processor time and 3 GB of memory, this process then opens
the file without limits. The cache folder records the SHA-256 of each content that passed.
"""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from colearn.errors import ConfigError, printable

from .cache import cache_folder

SECONDS = 10
"""Limit on processor time in seconds; Gemma 3's tokenizer, with 262,000 tokens, takes 2 seconds."""
MEMORY = 3 << 30
"""Limit on address space in bytes; the tokenizer of Gemma 3 takes less than 1 GB."""
_FORM = 3
"""Version of the checks in the child process. It is increased when a check is added, so that all
files are checked again."""
_PATIENCE = 120.0
"""Maximum wall-clock time of the child process in seconds, for busy machines. Usually, the limit
`SECONDS` on processor time ends the child earlier."""
_FOUND = 3
_OPENER = Path(__file__).with_name("_open.py")


def check_template(template: str, settings: Mapping[str, Any]) -> None:
    """Errors: ConfigError for a chat template that takes too much time or memory to render."""
    source = json.dumps({"template": template, "settings": dict(settings)}, default=str)
    reason = _reason(hashlib.sha256(source.encode()).hexdigest(), ("template",), source)
    if reason is not None:
        raise ConfigError(
            f"agents.chat: the template {reason}; give another .jinja template or 'plain'"
        )


def check_model_files(folder: Path, digests: Mapping[str, str]) -> None:
    """Check a model's files. digests: maps the name of each settings and tokenizer file in the
    folder to the file's SHA-256.

    Errors: ValueError for files that take too much time or memory to open.
    """
    reason = _reason(_key(digests), ("model", str(folder)), "")
    if reason is not None:
        raise ValueError(f"its config or tokenizer {reason}")


def remember_model_files(digests: Mapping[str, str]) -> None:
    """Record that model files need no check because this program has written them."""
    _remember(_key(digests))


def _key(digests: Mapping[str, str]) -> str:
    return hashlib.sha256(json.dumps(digests, sort_keys=True).encode()).hexdigest()


@lru_cache(maxsize=1024)
def _reason(key: str, arguments: Sequence[str], source: str) -> str | None:
    """Returns the problem that the child process found, or None if it found no problem. Results are
    cached for each content."""
    if _remembered(key).exists():
        return None
    command = [sys.executable, "-P", "-B", str(_OPENER), str(SECONDS), str(MEMORY), *arguments]
    try:
        child = subprocess.run(
            command, input=source.encode(), capture_output=True, timeout=_PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        return f"has not opened after {_PATIENCE:g} s"
    if child.returncode == _FOUND:
        return printable(child.stdout.decode("utf-8", "replace"))[:200]
    if -child.returncode in (signal.SIGXCPU, signal.SIGKILL):
        return f"takes more than {SECONDS} s of processor time to open"
    if child.returncode < 0:
        name = signal.Signals(-child.returncode).name
        return (
            f"needs more than {MEMORY / 2**30:g} GB of memory to open, or ends its reader ({name})"
        )
    if child.returncode == 0:
        _remember(key)
    return None


def _remember(key: str) -> None:
    place = _remembered(key)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()
    except OSError:
        pass  # a cache that cannot be written costs the next process a tenth of a second


def _remembered(key: str) -> Path:
    return cache_folder() / "opened" / f"{_FORM}-{key}"
