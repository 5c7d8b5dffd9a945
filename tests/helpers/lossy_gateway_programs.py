"""Programs whose episodes are lost: some of them, or all."""

from __future__ import annotations

from typing import Any

from tests.helpers.gateway_programs import ask, user


def items(split: str) -> list[Any]:
    return ["fails at once", "fails later", "asks nobody", "plays"]


async def some_are_lost(item: str, endpoints: Any) -> float:
    if item == "asks nobody":
        return 0.5
    if item == "fails at once":
        raise RuntimeError(item)
    await ask(endpoints["one"], [user(item)])
    if item == "fails later":
        raise RuntimeError(item)
    return 1.0


async def quiet(item: Any, endpoints: Any) -> Any:
    """Asks nobody; returns the item's result, if it has one."""
    return item.get("result") if isinstance(item, dict) else None


async def shouts(item: Any, endpoints: Any) -> None:
    raise RuntimeError("\x1b[2Jone\r\n two\x07")


def grade(item: Any, result: str | None) -> float:
    if result is None:
        return 0.0
    return float("inf") if result == "inf" else float(int(result))
