"""Reads regular files only: a device or a named pipe may never end."""

from __future__ import annotations

import errno
import stat
from pathlib import Path


def read_regular(path: Path) -> bytes:
    """The bytes of a file.

    Errors: OSError for a file that cannot be read, a name that no file can have, and what is
    neither a file nor a link to one.
    """
    try:
        mode = path.stat().st_mode
    except ValueError:  # a NUL in the name
        raise OSError(errno.EINVAL, "no file can have this name") from None
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise OSError(errno.EINVAL, "a device or a pipe, not a file")
    return path.read_bytes()
