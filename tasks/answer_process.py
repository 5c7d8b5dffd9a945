"""Asks a separate process about answers, since packages that read answers may not terminate."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


class AnswerProcess:
    """Runs a script that answers each question, a line of JSON, with a line of JSON. Any thread may
    ask; the script receives one question at a time. The process starts at the first question. If an
    answer takes more time or memory than the script allows, the process ends, and it is started
    again for the next question.

    environment: variables in addition to those of this process.
    """

    def __init__(
        self,
        script: Path,
        arguments: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._script, self._arguments = script, tuple(arguments)
        self._environment = {**os.environ, **(environment or {})}
        self._lock = threading.Lock()
        self._child: subprocess.Popen[str] | None = None
        self._owner = 0
        atexit.register(self.close)

    def ask(self, question: Any) -> Any:
        """The script's answer; None if it took too much."""
        with self._lock:
            child = self._started()
            assert child.stdin is not None and child.stdout is not None
            try:
                child.stdin.write(json.dumps(question) + "\n")
                child.stdin.flush()
                line = child.stdout.readline()
            except BrokenPipeError:
                line = ""
            if not line:
                self._end()
                return None
            return json.loads(line)

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._end()

    def _started(self) -> subprocess.Popen[str]:
        if self._child is not None and self._owner == os.getpid():
            return self._child
        # -P: the script's folder holds modules whose names other packages may use
        command = [sys.executable, "-P", str(self._script), *self._arguments]
        child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=self._environment,
        )
        assert child.stdout is not None
        self._child, self._owner = child, os.getpid()
        if not child.stdout.readline():
            self._end()
            name = self._script.name
            raise ChildProcessError(f"{name} ended before its first answer, as said above")
        return child

    def _end(self) -> None:
        child, self._child = self._child, None
        if child is None or self._owner != os.getpid():
            return  # a forked process leaves its parent's alone
        child.kill()
        child.communicate()
