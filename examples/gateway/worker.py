"""Plays a program's episodes for `colearn train`, or the held-out items with agents at given URLs.

It needs the standard library alone, so it runs in the environment of any framework.

    python PROGRAM.py                                        # started by task.command, or by hand
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection, HTTPResponse, RemoteDisconnected
from typing import Any
from urllib.parse import urlsplit

Play = Callable[[Any, Mapping[str, str]], Awaitable[Any]]

_THREADS = 2048
"""Most threads of blocking calls, as many as the gateway takes connections. A thread is started
only where all others are busy."""

_MOST = 64
"""Most episodes that one request to the gateway returns. All of them are played concurrently, as
are those of other requests."""


def main(play: Play, held_out: list[Any], grade: Callable[[Any, Any], Any]) -> None:
    """Plays for the gateway, or plays the held-out items with the agents at the URLs given."""
    if len(sys.argv) == 1:
        asyncio.run(work(play, os.environ["COLEARN_GATEWAY"]))
        return
    endpoints = json.loads(sys.argv[1])
    scores = asyncio.run(score(play, endpoints, held_out, grade))
    print(f"{sum(scores) / len(scores):.3f} on {len(scores)} held-out items")


async def score(
    play: Play, endpoints: Mapping[str, str], items: list[Any], grade: Callable[[Any, Any], Any]
) -> list[Any]:
    """Returns the score of each item, all played in one event loop: a program's client belongs to
    the loop of its first request."""
    return [grade(item, await play(item, endpoints)) for item in items]


async def work(play: Play, gateway: str) -> None:
    """Plays every episode that the gateway offers, all of them concurrently, until the run ends."""
    # A play that asks in a thread holds it until the answer, and answers may come only once all
    # episodes have asked: with asyncio's few threads (at most 32) they would wait for one another.
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_THREADS))
    episodes, ends = _Connection(gateway), _Connection(gateway)
    playing = set[asyncio.Task[None]]()

    async def play_one(episode: Any) -> None:
        try:
            end = {"result": await play(episode["item"], episode["endpoints"])}
        except Exception as error:  # noqa: BLE001 - the episode fails, the worker does not
            end = {"failure": f"{type(error).__name__}: {error}"}
        await ends.post(episode["end"], end)

    while True:
        offered = await episodes.post(gateway, {"most": _MOST})
        for episode in offered["episodes"] if offered else ():  # none for 20 seconds
            task = asyncio.create_task(play_one(episode))
            playing.add(task)
            task.add_done_callback(playing.discard)


class _Connection:
    """A connection that is kept between requests, in a thread of its own."""

    def __init__(self, url: str) -> None:
        self._connection = HTTPConnection(urlsplit(url).netloc, timeout=120)
        self._thread = ThreadPoolExecutor(1)

    async def post(self, url: str, body: Any) -> Any:
        """Sends JSON; returns the JSON of the answer."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._post, urlsplit(url).path, body)

    def _post(self, path: str, body: Any) -> Any:
        text = json.dumps(body).encode()
        try:
            answer = self._answer(path, text)
            content = answer.read()
        except BaseException:  # between request and answer, it would refuse every later request
            self._connection.close()
            raise
        if answer.status >= 400:
            raise RuntimeError(f"{path} was answered with {answer.status}: {content[:300]!r}")
        return json.loads(content or b"null")

    def _answer(self, path: str, text: bytes) -> HTTPResponse:
        kept, whole = self._connection.sock is not None, False
        try:
            self._connection.request("POST", path, text)
            whole = True
            return self._connection.getresponse()
        except ConnectionError as error:
            # The gateway may have closed a kept connection while it was idle. The next request then
            # cannot be sent whole, or ends without one byte of an answer; as a rule nobody has read
            # it, so it is sent again. Any other request may have been carried out already.
            if not kept or (whole and not isinstance(error, RemoteDisconnected)):
                raise
        self._connection.close()
        self._connection.request("POST", path, text)
        return self._connection.getresponse()
