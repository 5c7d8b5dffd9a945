"""Standard output and standard error of the command line, and devices that take no more."""

from __future__ import annotations

import errno
import os
from typing import IO, Any

from colearn.errors import ColearnError
from colearn.text.masking import masked


class OutputLost(ColearnError):
    """Standard output takes no more, such as on a full disk."""


class CommandOutput:
    """Standard output; a device that takes no more is an `OutputLost`.

    A reader that has gone away (`| head`) stays a BrokenPipeError.
    """

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Writes a text. Errors: OutputLost."""
        try:
            return self._stream.write(text)
        except OSError as error:
            raise self._lost(error) from None

    def flush(self) -> None:
        """Writes what is buffered. Errors: OutputLost."""
        try:
            self._stream.flush()
        except OSError as error:
            raise self._lost(error) from None

    def _lost(self, error: OSError) -> Exception:
        if error.errno == errno.EPIPE:
            return error
        _discard(self._stream)
        reason = error.strerror or str(error)
        return OutputLost(f"standard output: {reason}; write to a place with room")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class Errors:
    """Standard error: secrets are masked, and what its device does not take is dropped, because a
    run must not end with the room for its notes."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Writes the masked text; returns the length of the given one."""
        try:
            self._stream.write(masked(text))
        except OSError:
            _discard(self._stream)
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Writes several texts."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Writes what is buffered."""
        try:
            self._stream.flush()
        except OSError:
            _discard(self._stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _discard(stream: IO[str]) -> None:
    """Send what the stream still holds, and all that follows, to the null device; the
    interpreter's exit would fail on it once more."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
