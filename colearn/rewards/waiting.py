"""Runs a coroutine from synchronous code."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")


def finish(waiting: Awaitable[Result]) -> Result:
    """The result of an awaitable. It is computed in another thread if an event loop already runs in
    this one."""

    async def main() -> Result:
        return await waiting

    if asyncio.events._get_running_loop() is None:
        return asyncio.run(main())
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, main()).result()
