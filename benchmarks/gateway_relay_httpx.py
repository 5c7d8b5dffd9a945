"""The relay of `examples/gateway` in plain httpx, without a framework or a client library."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import httpx

sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "gateway"))

import scenes
from worker import main

CERTIFICATES = httpx.create_ssl_context()
"""Slow to create, so all clients share it."""


async def say(client: httpx.AsyncClient, url: str, text: str) -> str:
    """Returns the answer of one chat completion."""
    body = {"model": "agent", "messages": [{"role": "user", "content": text}]}
    answer = await client.post(f"{url}/chat/completions", json=body)
    return str(answer.raise_for_status().json()["choices"][0]["message"]["content"])


async def play(item: str, endpoints: Mapping[str, str]) -> dict[str, str]:
    """Plays one episode, with a client of its own: at each request, httpx checks every connection
    of the client's pool."""
    async with httpx.AsyncClient(timeout=60, verify=CERTIFICATES) as client:
        told = await say(client, endpoints["lookout"], f"You see: {item}. Which colour?")
        painted = await say(client, endpoints["painter"], f"The lookout says: {told}. Paint it.")
    return {"lookout": told, "painter": painted}


if __name__ == "__main__":
    main(play, scenes.items("test"), scenes.grade)
