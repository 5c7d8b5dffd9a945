"""Plays a program's episodes for `colearn train`, or the held-out items with agents at given URLs.

It needs the standard library alone, so it runs in the environment of any framework.

    python PROGRAM.py                                        # started by task.command, or by hand
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import urllib.request
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

Play = Callable[[Any, Mapping[str, str]], Awaitable[Any]]

_THREADS = 2048
"""Most threads of blocking calls, as many as the gateway takes connections. A thread is started
only where all others are busy."""


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
    loop = asyncio.get_running_loop()
    # A play that asks in a thread holds it until the answer, and answers may come only once all
    # episodes have asked: with asyncio's few threads (at most 32) they would wait for one another.
    loop.set_default_executor(ThreadPoolExecutor(_THREADS))
    threads = ThreadPoolExecutor(16)
    playing = set[asyncio.Task[None]]()

    async def play_one(episode: Any) -> None:
        try:
            end = {"result": await play(episode["item"], episode["endpoints"])}
        except Exception as error:  # noqa: BLE001 - the episode fails, the worker does not
            end = {"failure": f"{type(error).__name__}: {error}"}
        await loop.run_in_executor(threads, _post, episode["end"], end)

    while True:
        episode = await loop.run_in_executor(threads, _post, gateway, {})
        if episode is not None:  # None: there was no episode for 20 seconds
            task = asyncio.create_task(play_one(episode))
            playing.add(task)
            task.add_done_callback(playing.discard)


def _post(url: str, body: Any) -> Any:
    request = urllib.request.Request(url, json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.loads(answer.read() or b"null")
