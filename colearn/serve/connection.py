"""HTTP connections that do not wait for ever: uvicorn sets no limit on a request's headers, on what
is left of a refused body, or on a client that does not read."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


class PatientProtocol(H11Protocol):
    """A connection is cut `patience` seconds after the server began to wait for its client in
    vain. The body of a request in work is timed where it is read."""

    patience = 10.0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._reading: asyncio.TimerHandle | None = None
        self._writing: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._reading, self._writing):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._writing is None:
            self._writing = self.loop.call_later(self.patience, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None

    def _watch(self) -> None:
        if self._waits() and self._reading is None:
            self._reading = self.loop.call_later(self.patience, self.transport.abort)
        elif not self._waits() and self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def _waits(self) -> bool:
        """For the rest of a request that no task is working on."""
        if self.cycle is None:
            return True
        if not self.cycle.response_complete:
            return False
        between = self.conn.their_state in (h11.IDLE, h11.DONE) and not self.conn.trailing_data[0]
        return not between


def protocol(patience: float) -> type[PatientProtocol]:
    return type("PatientProtocol", (PatientProtocol,), {"patience": patience})
