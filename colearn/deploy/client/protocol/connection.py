"""HTTP connections with timeouts.

uvicorn limits the total number of connections and their idle time (`limit_concurrency`,
`timeout_keep_alive`). This module adds timeouts for slow requests, for the unread rest of rejected
request bodies, and for clients that do not read the answer.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


class PatientProtocol(H11Protocol):
    """Closes a connection if the server has waited `patience` seconds for the client.

    The code that reads the body of an accepted request applies a separate timeout.
    """

    patience = 10.0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._reading: asyncio.TimerHandle | None = None
        self._writing: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
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
        """Returns whether the connection waits for the rest of a request."""
        if self.cycle is None:
            return True
        if not self.cycle.response_complete:
            return False
        between = self.conn.their_state in (h11.IDLE, h11.DONE) and not self.conn.trailing_data[0]
        return not between


def protocol(patience: float) -> type[PatientProtocol]:
    """Returns the protocol class of a server with this patience, in seconds."""
    return type("PatientProtocol", (PatientProtocol,), {"patience": patience})
