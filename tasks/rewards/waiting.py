"""Runs a coroutine from synchronous code."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")


def finish(waiting: Awaitable[Result]) -> Result:
    """Returns the result of an awaitable. If an event loop already runs in this thread, another
    thread computes the result."""

    async def main() -> Result:
        return await waiting

    if asyncio.events._get_running_loop() is None:
        return asyncio.run(main())
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, main()).result()
