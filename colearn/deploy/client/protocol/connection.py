"""HTTP connections with timeouts, and with a maximum number of connections per client address.

uvicorn limits the total number of connections and their idle time (`limit_concurrency`,
`timeout_keep_alive`). This module adds timeouts for slow requests, for the unread rest of rejected
request bodies, and for clients that do not read the answer. The module also limits the number of
connections per client address.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


class PatientProtocol(H11Protocol):
    """Closes a connection if the server has waited `patience` seconds for the client.

    The code that reads the body of an accepted request applies a separate timeout.
    """

    patience = 10.0
    most = 512
    """Maximum number of open connections from one address; the server answers further connections
    with status 429 and closes them."""
    open: ClassVar[Counter[str]] = Counter()
    """Number of open connections by client address."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._reading: asyncio.TimerHandle | None = None
        self._writing: asyncio.TimerHandle | None = None
        self._address: str | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        peer = transport.get_extra_info("peername")
        self._address = str(peer[0]) if peer else ""
        self.open[self._address] += 1
        if self.open[self._address] > self.most:
            transport.write(_TOO_MANY)
            transport.close()
        else:
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
        if self._address is not None:
            self.open[self._address] -= 1
            if not self.open[self._address]:
                del self.open[self._address]
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


_TOO_MANY = (
    b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\nRetry-After: 1\r\n"
    b"Connection: close\r\n\r\n"
)


def protocol(patience: float, most: int) -> type[PatientProtocol]:
    """Returns the protocol class of one server, which counts its own connections."""
    settings = {"patience": patience, "most": most, "open": Counter()}
    return type("PatientProtocol", (PatientProtocol,), settings)
