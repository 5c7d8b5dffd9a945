"""Wrappers for the standard output and standard error of the command line. The wrappers handle
devices that accept no more data."""

from __future__ import annotations

import errno
import os
from typing import IO, Any

from colearn.errors import ColearnError
from colearn.text.masking import masked


class OutputLost(ColearnError):
    """Raised when standard output accepts no more data, for example on a full disk, or because a
    reward function has closed it."""


class CommandOutput:
    """Standard output; raises `OutputLost` if the device accepts no more data.

    If the reader has closed the pipe (`| head`), the BrokenPipeError is raised unchanged.
    """

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._check_open()
        try:
            return self._stream.write(text)
        except OSError as error:
            raise self._lost(error) from None

    def flush(self) -> None:
        self._check_open()
        try:
            self._stream.flush()
        except OSError as error:
            raise self._lost(error) from None

    def _check_open(self) -> None:
        if self._stream.closed:
            raise OutputLost(
                "standard output: was closed by code of the config's; let it stay open"
            )

    def _lost(self, error: OSError) -> Exception:
        if error.errno == errno.EPIPE:
            return error
        _discard(self._stream)
        reason = error.strerror or str(error)
        return OutputLost(f"standard output: {reason}; write to a place with room")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class Errors:
    """Standard error with masked secrets. Output that the device does not accept is dropped, so
    that a full device does not end a run."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Writes the masked text; returns the length of the original text."""
        if not self._stream.closed:
            try:
                self._stream.write(masked(text))
            except OSError:
                _discard(self._stream)
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        if not self._stream.closed:
            try:
                self._stream.flush()
            except OSError:
                _discard(self._stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _discard(stream: IO[str]) -> None:
    """Send the stream's buffered text and all later output to the null device. Otherwise, the
    interpreter would fail again at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
