"""A process of a sandbox as the run that wanted it sees it, by whatever it was started."""

from __future__ import annotations

import contextlib
import io
import os
import select
import signal
import socket
import subprocess
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import IO

from .place import FOLDER

_GRACE = 5.0
"""Seconds in which the kernel ends what was killed."""
_BURIAL = 60.0
"""Seconds after which a killed process that still is there is an error."""


class Process(ABC):
    """The outermost one: when it is killed, all inside end with it."""

    stdin: IO[bytes] | io.FileIO
    stdout: IO[bytes] | io.FileIO
    stderr: IO[bytes] | io.FileIO | None
    """None: it goes where the output goes."""
    returncode: int
    """After `bury`. Negative, or above 128: ended by that signal."""

    @abstractmethod
    def ended(self) -> bool:
        """Whether it has, by itself or not."""

    @abstractmethod
    def kill(self) -> None:
        """End it and all inside; it is not waited for."""

    @abstractmethod
    def bury(self) -> int:
        """Wait for a process that has ended or was killed; its `returncode`."""

    def too_many_files(self) -> bool:
        """Whether its folder holds more than it may, where only looking can tell."""
        return False

    def streams(self) -> Iterator[IO[bytes] | io.FileIO]:
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                yield stream


class Spawned(Process):
    """A child of ours: bubblewrap, or the interpreter itself.

    folder: of an `unsafe` process, on disk.
    files: how many there may be in a sandbox's folder.
    """

    def __init__(
        self,
        child: subprocess.Popen[bytes],
        folder: tempfile.TemporaryDirectory[str] | None,
        files: int | None,
    ) -> None:
        assert child.stdin is not None and child.stdout is not None
        self._child, self._folder, self._files = child, folder, files
        self.stdin, self.stdout, self.stderr = child.stdin, child.stdout, child.stderr

    def ended(self) -> bool:
        # not waited for, so its number stays its own
        options = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self._child.pid, options) is not None

    def kill(self) -> None:
        # from the inside out, so that the outermost still waits for the one below it: where this
        # is a container's first process nobody else would
        children = [] if self._folder is not None else _children(self._child.pid)
        with contextlib.suppress(ProcessLookupError):
            for child in children:
                os.kill(child, signal.SIGKILL)
            if not children:
                os.killpg(self._child.pid, signal.SIGKILL)

    def bury(self) -> int:
        try:
            self.returncode = self._child.wait(_GRACE)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self.returncode = self._child.wait(_BURIAL)
        if self._folder is not None:
            self._folder.cleanup()
        return self.returncode

    def too_many_files(self) -> bool:
        if self._files is None:
            return False
        inner = _children(self._child.pid)
        if not inner:
            return False
        try:
            box = os.statvfs(f"/proc/{inner[0]}/root{FOLDER}")
        except OSError:  # it ended, is still being made, or is another user's: a setuid bubblewrap
            return False
        return box.f_files - box.f_ffree > self._files


class Forked(Process):
    """A sandbox of the server's; the line to it carries its exit status, and its end if shut."""

    def __init__(self, line: socket.socket, stdin: int, stdout: int, stderr: int | None) -> None:
        self._line = line
        self.stdin = io.FileIO(stdin, "wb")
        self.stdout = io.FileIO(stdout, "rb")
        self.stderr = None if stderr is None else io.FileIO(stderr, "rb")

    def ended(self) -> bool:
        poll = select.poll()  # select() knows descriptors below 1024 only
        poll.register(self._line, select.POLLIN)
        return bool(poll.poll(0))

    def kill(self) -> None:
        with contextlib.suppress(OSError):  # it has ended
            self._line.shutdown(socket.SHUT_WR)

    def bury(self) -> int:
        self._line.settimeout(_BURIAL)
        with self._line:
            said = self._line.recv(16)
        self.returncode = int(said) if said else -signal.SIGKILL
        return self.returncode


def _children(pid: int) -> list[int]:
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return [int(word) for word in file.read().split()]
    except (FileNotFoundError, ProcessLookupError):  # it ended, or the kernel keeps no such list
        return []
