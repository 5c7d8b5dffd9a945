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
    working, disconnected = asyncio.ensure_future(work), False

    async def leave() -> None:
        nonlocal disconnected
        while (await request.receive())["type"] != "http.disconnect":
            pass
        disconnected = True
        working.cancel()

    leaving = asyncio.create_task(leave())
    try:
        return await working
    except asyncio.CancelledError:
        if disconnected and working.cancelled():
            raise ServeError(499, "the client has closed the connection") from None
        raise
    finally:
        leaving.cancel()
