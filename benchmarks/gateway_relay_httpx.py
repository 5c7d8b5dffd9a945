"""The relay of `examples/gateway` in plain httpx, without a framework or a client library."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import httpx

sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "gateway"))

import scenes
from worker import main

CLIENT = httpx.AsyncClient(timeout=60, limits=httpx.Limits(max_connections=None))


async def say(url: str, text: str) -> str:
    """Returns the answer of one chat completion."""
    body = {"model": "agent", "messages": [{"role": "user", "content": text}]}
    answer = await CLIENT.post(f"{url}/chat/completions", json=body)
    return str(answer.raise_for_status().json()["choices"][0]["message"]["content"])


async def play(item: str, endpoints: Mapping[str, str]) -> dict[str, str]:
    """Plays one episode."""
    told = await say(endpoints["lookout"], f"You see: {item}. Which colour?")
    painted = await say(endpoints["painter"], f"The lookout says: {told}. Paint it.")
    return {"lookout": told, "painter": painted}


if __name__ == "__main__":
    main(play, scenes.items("test"), scenes.grade)
