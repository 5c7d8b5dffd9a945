"""What the watch page does with requests that do not end."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from colearn.deploy.play import watch


def test_a_request_that_is_never_finished_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "LIMITS", replace(watch.LIMITS, read_timeout=0.1))

    async def wait() -> bytes:
        async with watch.watched("a task") as page:
            address, port = page.socket.getsockname()
            while True:
                try:
                    reader, writer = await asyncio.open_connection(address, port)
                    break
                except ConnectionRefusedError:  # the server has not started yet
                    await asyncio.sleep(0.01)
            writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n")
            answer = await asyncio.wait_for(reader.read(), 600)
            writer.close()
            return answer

    assert asyncio.run(wait()) == b""
