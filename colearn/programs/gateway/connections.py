"""Limits the number of HTTP connections of all programs, and divides these connections among the
programs."""

from __future__ import annotations

from collections import Counter
from typing import Any

from colearn.deploy.client.protocol.connection import PatientProtocol

MOST = 1024
"""Maximum number of connections of all programs together."""
_PATIENCE = 10.0
"""Seconds within which a program must send a request, or read bytes that were written to it."""
_UNKNOWN = ""
"""Program name of a connection that has not sent a request."""


class ProgramProtocol(PatientProtocol):
    """Limits the number of connections. If there are more than `MOST`, an idle connection is
    closed, taken from the program with the most idle connections.

    A program that keeps opening connections thus loses only its own connections.
    """

    programs: dict[ProgramProtocol, str]
    """Maps each open connection to the name of its program. The connection with the least recent
    request comes first."""

    def connection_made(self, transport: Any) -> None:
        """Registers the connection. If there are too many connections, closes another one."""
        super().connection_made(transport)
        self.programs[self] = _UNKNOWN
        if len(self.programs) > MOST:
            self._evict()

    def data_received(self, data: bytes) -> None:
        """Reads a part of a request; the path of the request names the program."""
        super().data_received(data)
        if self in self.programs and self.cycle is not None:
            del self.programs[self]
            self.programs[self] = _program_of(self.scope["path"])

    def connection_lost(self, exc: Exception | None) -> None:
        """Removes the connection."""
        self.programs.pop(self, None)
        super().connection_lost(exc)

    @property
    def idle(self) -> bool:
        """True if no request is being answered."""
        return self.cycle is None or bool(self.cycle.response_complete)

    def _evict(self) -> None:
        idle = [connection for connection in self.programs if connection.idle]
        counts = Counter(self.programs[connection] for connection in idle)
        program, _ = counts.most_common(1)[0]
        oldest = next(connection for connection in idle if self.programs[connection] == program)
        del self.programs[oldest]
        oldest.transport.close()


def _program_of(path: str) -> str:
    """Returns the part of a path that names the episode or the worker."""
    parts = path.split("/")
    return parts[2] if len(parts) > 2 else _UNKNOWN


def program_protocol() -> type[ProgramProtocol]:
    """Returns the protocol class for one server. The class counts only connections to that
    server."""
    settings = {"patience": _PATIENCE, "programs": {}}
    return type("ProgramProtocol", (ProgramProtocol,), settings)
