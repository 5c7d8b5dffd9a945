"""Parses answers in a separate process, since sympy may not terminate."""

from __future__ import annotations

import atexit
import importlib.util
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from colearn.errors import MissingExtra

SCRIPT = Path(__file__).with_name("reader_process.py")


class Reader:
    """Reads answers one at a time, from any thread, in a process that starts at the first answer.
    An answer that takes more time or memory than `reader_process` allows counts as not a number,
    and the process is restarted."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child: subprocess.Popen[str] | None = None
        self._owner = 0
        atexit.register(self.close)

    def read(self, answer: str) -> float | None:
        """Errors: MissingExtra without math-verify."""
        value: float | None = self._ask(answer)
        return value

    def same(self, gold: str, answer: str) -> bool:
        """Whether math-verify considers the answer equal to the gold answer.

        Errors: MissingExtra without math-verify.
        """
        return self._ask([gold, answer]) is True

    def _ask(self, question: str | list[str]) -> Any:
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
        with self._lock:
            self._end()

    def _started(self) -> subprocess.Popen[str]:
        if self._child is not None and self._owner == os.getpid():
            return self._child
        if importlib.util.find_spec("math_verify") is None:
            raise MissingExtra("math-verify", "math")
        # -P: the script's folder holds modules whose names other packages may use
        told = [sys.executable, "-P", str(SCRIPT)]
        child = subprocess.Popen(told, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        self._child, self._owner = child, os.getpid()
        if not child.stdout.readline():
            self._end()
            raise ChildProcessError(f"{SCRIPT.name} ended before its first answer, as said above")
        return child

    def _end(self) -> None:
        child, self._child = self._child, None
        if child is None or self._owner != os.getpid():
            return  # a forked process leaves its parent's alone
        child.kill()
        child.communicate()
