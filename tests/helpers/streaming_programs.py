"""Programs that read streams."""

from __future__ import annotations

import json
import threading
from typing import Any

import httpx

RECEIVED = threading.Event()
"""Set when a program has received a text."""
TEXTS: list[list[str]] = []
"""The texts of each stream, in parts."""


async def reads(item: str, endpoints: Any) -> None:
    """Reads two streams of one conversation."""
    messages = [{"role": "user", "content": item}]
    for _ in range(2):
        parts = await _read(endpoints["one"], messages)
        TEXTS.append(parts)
        messages.append({"role": "assistant", "content": "".join(parts)})
        messages.append({"role": "user", "content": "go on"})


async def stops(item: str, endpoints: Any) -> None:
    """Ends the answer before "wo"."""
    TEXTS.append(await _read(endpoints["one"], [{"role": "user", "content": item}], stop="wo"))


async def waits(item: str, endpoints: Any) -> None:
    """The same conversation as `reads`, without streams."""
    messages = [{"role": "user", "content": item}]
    async with httpx.AsyncClient(timeout=30, verify=False) as client:
        for _ in range(2):
            url = f"{endpoints['one']}/chat/completions"
            answer = (await client.post(url, json={"messages": messages})).json()
            messages.append(
                {"role": "assistant", "content": answer["choices"][0]["message"]["content"]}
            )
            messages.append({"role": "user", "content": "go on"})


async def _read(url: str, messages: list[Any], **fields: Any) -> list[str]:
    parts = []
    body = {"messages": messages, "stream": True, **fields}
    async with (
        httpx.AsyncClient(timeout=30, verify=False) as client,
        client.stream("POST", f"{url}/chat/completions", json=body) as answer,
    ):
        async for line in answer.aiter_lines():
            if line.startswith("data: {"):
                (choice,) = json.loads(line[6:])["choices"]
                if choice["delta"].get("content"):
                    parts.append(choice["delta"]["content"])
                    RECEIVED.set()
    return parts
