"""Transfers results from one thread to futures that other threads await."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from concurrent.futures import Future
from typing import Any

Answer = asyncio.Future[Any] | Future[Any]
"""A future of an event loop or of a waiting thread."""
Ended = tuple[Answer, Any, BaseException | None]
"""A tuple of a future, its result, and its error (None if there is no error)."""


def hand_over(ended: Iterable[Ended]) -> None:
    """Complete futures with their results or errors, waking each event loop only once.

    Futures that were cancelled, or whose event loop has closed, are not changed.
    """
    by_loop: dict[asyncio.AbstractEventLoop, list[Ended]] = {}
    for one in ended:
        future = one[0]
        if isinstance(future, asyncio.Future):
            by_loop.setdefault(future.get_loop(), []).append(one)
        elif future.set_running_or_notify_cancel():
            _end(one)
    for loop, several in by_loop.items():
        try:
            loop.call_soon_threadsafe(_end_open, several)
        except RuntimeError:
            if not loop.is_closed():
                raise


def _end_open(ended: Iterable[Ended]) -> None:
    for one in ended:
        if not one[0].done():
            _end(one)


def _end(ended: Ended) -> None:
    future, result, error = ended
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
