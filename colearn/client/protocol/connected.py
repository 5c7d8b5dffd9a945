"""Cancels the work of a request when the request's client disconnects."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING, TypeVar

from .errors import ServeError

if TYPE_CHECKING:
    from starlette.requests import Request

Result = TypeVar("Result")


async def while_connected(request: Request, work: Awaitable[Result]) -> Result:
    """Returns the result of `work`, which is cancelled if the client disconnects.

    The request's body must already have been read. `work` has ended when this function returns.
    Errors: ServeError 499 if the client has disconnected.
    """

    async def leave() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    working, disconnect = asyncio.ensure_future(work), asyncio.create_task(leave())
    try:
        await asyncio.wait((working, disconnect), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ServeError(499, "the client has closed the connection")
        return working.result()
    finally:
        for task in (working, disconnect):
            task.cancel()
        await asyncio.wait((working, disconnect))
