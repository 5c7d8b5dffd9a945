"""Handles of sandbox processes: bubblewrap, or an `unsafe` interpreter."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from typing import IO

from .place import FOLDER

_GRACE = 5.0
"""Seconds that the kernel has to end a killed process."""
_BURIAL = 60.0
"""If a killed process still exists after this number of seconds, an error is raised."""


class Process:
    """The outermost process of a sandbox: killing it ends all processes inside.

    folder: the folder on disk of an `unsafe` process.
    files: file limit of a sandbox's folder.
    inside: that folder, by its path inside the sandbox.
    """

    def __init__(
        self,
        child: subprocess.Popen[bytes],
        folder: tempfile.TemporaryDirectory[str] | None,
        files: int | None,
        inside: str = FOLDER,
    ) -> None:
        assert child.stdin is not None and child.stdout is not None
        self._child, self._folder, self._files, self._inside = child, folder, files, inside
        self.stdin, self.stdout = child.stdin, child.stdout
        self.stderr = child.stderr
        """Standard error; None: merged into standard output."""
        self.returncode = 0
        """Set by `bury`. A negative value -N, or 128 + N, means killed by signal N."""

    def ended(self) -> bool:
        """Whether the process has ended."""
        # WNOWAIT: not reaped, so the process id is not reused
        options = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self._child.pid, options) is not None

    def kill(self) -> None:
        """Kill the process and all processes inside, without waiting."""
        # from the inside out: the outermost process must reap the one below it, because nobody else
        # does so if this is a container's first process
        children = [] if self._folder is not None else _children(self._child.pid)
        with contextlib.suppress(ProcessLookupError):
            for child in children:
                os.kill(child, signal.SIGKILL)
            if not children:
                os.killpg(self._child.pid, signal.SIGKILL)

    def bury(self) -> int:
        """Wait for an ended or killed process; returns its `returncode`."""
        try:
            self.returncode = self._child.wait(_GRACE)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self.returncode = self._child.wait(_BURIAL)
        if self._folder is not None:
            self._folder.cleanup()
        return self.returncode

    def too_many_files(self) -> bool:
        """Whether the program's folder exceeds the file limit."""
        if self._files is None:
            return False
        inner = _children(self._child.pid)
        if not inner:
            return False
        try:
            folder = f"/proc/{inner[0]}/root{self._inside}"
            if os.stat(folder).st_dev == os.stat("/").st_dev:
                return False  # it is starting, in the root of this machine
            box = os.statvfs(folder)
        except OSError:  # it ended, is starting, or belongs to another user (setuid bubblewrap)
            return False
        return box.f_files - box.f_ffree > self._files

    def streams(self) -> Iterator[IO[bytes]]:
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                yield stream


def _children(pid: int) -> list[int]:
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return [int(word) for word in file.read().split()]
    except (FileNotFoundError, ProcessLookupError):  # it ended, or the kernel provides no such list
        return []
