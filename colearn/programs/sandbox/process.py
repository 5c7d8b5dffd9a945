"""Handles of sandbox processes: started with bubblewrap, directly, or by the namespace server."""

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
"""Seconds that the kernel has to end a killed process."""
_BURIAL = 60.0
"""If a killed process still exists after this number of seconds, an error is raised."""


class Process(ABC):
    """The outermost process of a sandbox: killing it ends all processes inside."""

    stdin: IO[bytes] | io.FileIO
    stdout: IO[bytes] | io.FileIO
    stderr: IO[bytes] | io.FileIO | None
    """Standard error; None: merged into standard output."""
    returncode: int
    """Set by `bury`. A negative value -N, or 128 + N, means killed by signal N."""

    @abstractmethod
    def ended(self) -> bool:
        """Whether the process has ended."""

    @abstractmethod
    def kill(self) -> None:
        """Kill the process and all processes inside, without waiting."""

    @abstractmethod
    def bury(self) -> int:
        """Wait for an ended or killed process; returns its `returncode`."""

    def too_many_files(self) -> bool:
        """Whether the program's folder exceeds the file limit; False if the sandbox enforces it."""
        return False

    def streams(self) -> Iterator[IO[bytes] | io.FileIO]:
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                yield stream


class Spawned(Process):
    """A child process: bubblewrap, or the interpreter itself.

    folder: the folder on disk of an `unsafe` process.
    files: file limit of a sandbox's folder.
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
        # WNOWAIT: not reaped, so the process id is not reused
        options = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self._child.pid, options) is not None

    def kill(self) -> None:
        # from the inside out: the outermost process must reap the one below it, because nobody else
        # does so if this is a container's first process
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
        except OSError:  # it ended, is starting, or belongs to another user (setuid bubblewrap)
            return False
        return box.f_files - box.f_ffree > self._files


class Forked(Process):
    """A sandbox that the namespace server started. The socket `line` carries the exit status;
    closing `line` kills the sandbox."""

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
            status = self._line.recv(16)
        self.returncode = int(status) if status else -signal.SIGKILL
        return self.returncode


def _children(pid: int) -> list[int]:
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return [int(word) for word in file.read().split()]
    except (FileNotFoundError, ProcessLookupError):  # it ended, or the kernel provides no such list
        return []
