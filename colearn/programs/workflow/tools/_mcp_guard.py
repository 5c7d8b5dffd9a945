"""Guard process between a run and its MCP server; run as a script by `mcp`.

A server ends when its input closes, unless it is stalled. The guard kills the server and its
children when the process that started them has died.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

PACE = 0.5
"""Seconds between checks of the parent."""


def main() -> None:
    """Runs `argv[2:]` with this process's input and output, as long as this process's parent has
    the id `argv[1]`."""
    parent, command = int(sys.argv[1]), sys.argv[2:]
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()
    server = subprocess.Popen(command)
    for descriptor in (0, 1):  # only the server holds them open
        os.close(descriptor)
    code = server.wait()
    os._exit(code if code >= 0 else 128 - code)


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(PACE)
    os.killpg(0, signal.SIGKILL)  # the session that the client opened, this process included


if __name__ == "__main__":
    main()
