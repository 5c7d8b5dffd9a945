"""Starts a generation server for a run; the server ends with the run.

If this module is run as a program, it runs a command until the command or the parent process ends:

python -m colearn.engines.server_process PARENT COMMAND...
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from colearn.errors import ColearnError

_LAUNCHER = re.compile(
    "RANK|LOCAL_RANK|WORLD_SIZE|LOCAL_WORLD_SIZE|MASTER_ADDR|MASTER_PORT|TORCHELASTIC_.*"
)
"""Environment variables set by a launcher of training processes; the server must not inherit
them."""
_GRACE = 10.0
"""Number of seconds that a server has for a graceful shutdown before it is killed."""


class ServerProcess:
    """A server in a separate process group. A keeper process stops the server when this process
    ends.

    The server's output is written to `log`.
    """

    def __init__(
        self, command: Sequence[str], *, environment: Mapping[str, str], log: Path
    ) -> None:
        self.log = log
        variables = {
            name: value for name, value in os.environ.items() if not _LAUNCHER.fullmatch(name)
        }
        with log.open("wb") as output:
            self._keeper = subprocess.Popen(
                [sys.executable, "-P", "-m", __name__, str(os.getpid()), *command],
                env=variables | dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def running(self) -> bool:
        return self._keeper.poll() is None

    def failed(self) -> ColearnError:
        """Return the error to raise. The error message includes the last log line that names a
        cause."""
        lines = [line for line in self.log.read_text(errors="replace").splitlines() if line.strip()]
        causes = [line for line in lines if "error" in line.lower() and ": " in line]
        cause = " ".join((causes or lines or ["no output"])[-1].split())[-300:]
        return ColearnError(
            f"run.generator: the vLLM server ended while it started ({cause}); set "
            "run.generator.python to a Python with vLLM, and see docs/howto/vllm.md"
        )

    def keep_log(self) -> Path:
        """Copy the log to the system's temporary folder, from which the run does not remove the
        copy. Returns the path."""
        number, name = tempfile.mkstemp(prefix="colearn-server-", suffix=".log")
        os.close(number)
        return Path(shutil.copyfile(self.log, name))

    def close(self) -> None:
        """Stop the whole process group."""
        _end(self._keeper.pid, self._keeper)


def free_port() -> int:
    """Find a free port of the loopback interface."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def _end(group: int, leader: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            leader.wait(_GRACE)


def _keep(parent: int, command: Sequence[str]) -> int:
    """Run a command, and end the command's process group once `parent` is no longer the parent of
    this process."""
    signal.signal(signal.SIGTERM, lambda *_: None)  # the group is told, and the server answers
    server = subprocess.Popen(command)
    while server.poll() is None:
        if os.getppid() != parent:
            os.killpg(0, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                server.wait(_GRACE)
            os.killpg(0, signal.SIGKILL)
        time.sleep(0.5)
    return server.returncode


if __name__ == "__main__":
    sys.exit(_keep(int(sys.argv[1]), sys.argv[2:]))
