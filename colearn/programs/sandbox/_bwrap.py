"""Bubblewrap command lines."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence

from .limits import Limits
from .place import ENVIRONMENT, VisiblePaths

HOMES = ("/root", "/home", "/opt", "/tmp")
"""Folders of a writable root that programs expect, which may also contain the interpreter."""


def bwrap_command(
    words: Sequence[str], limits: Limits, place: VisiblePaths, filter_fd: int | None
) -> list[str]:
    """Returns the command that runs `words` in a sandbox; `filter_fd` is the filter's file."""
    command = [shutil.which("bwrap") or "bwrap"]
    if os.geteuid() == 0:
        # root gets no user namespace: _apply_limits.py switches to an unprivileged user
        command += ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
        command += ["--unshare-cgroup-try", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    else:
        command += ["--unshare-all"]
    command += ["--die-with-parent", "--new-session", "--clearenv"]
    for name, value in ENVIRONMENT.items():
        command += ["--setenv", name, value]
    size = str(limits.file_mb << 20)
    if place.folder == "/":
        command += ["--perms", "1777", "--size", size, "--tmpfs", "/"]
        for path in HOMES:
            command += ["--perms", "1777", "--dir", path]
    for path in place.parents:
        command += ["--perms", "0755", "--dir", path]
    for path in place.read_only:
        command += ["--ro-bind", path, path]
    for path in place.hidden:
        command += ["--perms", "0555", "--size", "4096", "--tmpfs", path, "--remount-ro", path]
    for path, target in place.links:
        command += ["--symlink", target, path]
    for path in place.devices:
        command += ["--dev-bind", path, path]
    if place.folder != "/":
        command += ["--perms", "1777", "--size", size, "--tmpfs", place.folder, "--remount-ro", "/"]
    command += ["--chdir", place.folder]
    if filter_fd is not None:
        command += ["--seccomp", str(filter_fd)]
    return [*command, *words]


def filter_file(code: bytes | None) -> int | None:
    """A readable file descriptor that holds the filter, or None."""
    if code is None:
        return None
    descriptor = os.memfd_create("filter")
    os.write(descriptor, code)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
