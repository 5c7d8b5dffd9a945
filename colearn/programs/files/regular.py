"""Reads regular files only, because reading a device or a named pipe may never end."""

from __future__ import annotations

import errno
import stat
from pathlib import Path


def read_regular(path: Path) -> bytes:
    """The bytes of a file.

    Errors: OSError if the file cannot be read, if no file can have this name, or if the path is
    neither a regular file nor a link to one.
    """
    try:
        mode = path.stat().st_mode
    except ValueError:  # a NUL in the name
        raise OSError(errno.EINVAL, "no file can have this name") from None
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise OSError(errno.EINVAL, "a device or a pipe, not a file")
    return path.read_bytes()
