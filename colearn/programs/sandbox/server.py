"""Client of the namespace server; each process starts its own server on first use."""

from __future__ import annotations

import array
import atexit
import contextlib
import marshal
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .place import ENVIRONMENT
from .process import Forked

_SERVER = Path(__file__).with_name("_namespaces.py")


class _Server:
    def __init__(self) -> None:
        parent_end, server_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        words = [sys.executable, "-s", "-S", "-P", "-B", str(_SERVER), str(server_end.fileno())]
        with server_end:
            self._process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                pass_fds=[server_end.fileno()],
                cwd="/",
                env=ENVIRONMENT,
                start_new_session=True,
            )
        self._requests = parent_end

    def ask(self, settings: dict[str, Any], descriptors: Sequence[int]) -> None:
        passed = array.array("i", descriptors)
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, passed)]
        self._requests.sendmsg([marshal.dumps(settings)], rights)

    def close(self) -> None:
        """Stop the server; each sandbox ends when its socket `line` closes."""
        with contextlib.suppress(OSError):
            self._requests.shutdown(socket.SHUT_RDWR)  # also ends copies in forks of this process
        self._requests.close()
        self._process.wait()

    def forget(self) -> None:
        """Release the server in a forked process: the server belongs to the parent."""
        self._requests.close()
        self._process.returncode = 0  # only the parent may wait for it


_lock = threading.Lock()
_server: _Server | None = None


def start_forked(
    settings: dict[str, Any], *, with_errors: bool, channel: Sequence[int] = ()
) -> Forked:
    """Start a sandbox through the namespace server.

    settings: a request of `_namespaces.py`.
    with_errors: whether to capture standard error separately from standard output.
    channel: further descriptors that the sandbox inherits.
    """
    with contextlib.ExitStack() as own_ends, contextlib.ExitStack() as sandbox_ends:

        def pipe(writing: bool) -> tuple[int, int]:
            """Create a pipe; returns this process's end and the sandbox's end."""
            reader, writer = os.pipe()
            our, their = (writer, reader) if writing else (reader, writer)
            own_ends.callback(os.close, our)
            sandbox_ends.callback(os.close, their)
            return our, their

        stdin, stdin_there = pipe(True)
        stdout, stdout_there = pipe(False)
        stderr, stderr_there = pipe(False) if with_errors else (None, stdout_there)
        line, line_there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        own_ends.enter_context(line)
        sandbox_ends.enter_context(line_there)
        passed = [line_there.fileno(), stdin_there, stdout_there, stderr_there, *channel]
        _ask(settings, passed)
        own_ends.pop_all()
    return Forked(line, stdin, stdout, stderr)


def _ask(settings: dict[str, Any], descriptors: Sequence[int]) -> None:
    global _server
    with _lock:
        if _server is None:
            _server = _Server()
        try:
            _server.ask(settings, descriptors)
        except (BrokenPipeError, ConnectionResetError):  # the server was killed
            _server.close()
            _server = _Server()
            _server.ask(settings, descriptors)


def _after_fork() -> None:
    global _server, _lock
    _lock = threading.Lock()  # another thread may have held it
    if _server is not None:
        _server.forget()
        _server = None


@atexit.register
def _stop() -> None:
    global _server
    if _server is not None:
        _server.close()
        _server = None


os.register_at_fork(after_in_child=_after_fork)
