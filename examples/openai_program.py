# Hardware: Two CPU cores, no download, about 1 minute; needs ".[serve]" and openai.
# Shows: a program that only calls OpenAI's API is trained as a team.
from __future__ import annotations

from collections.abc import Mapping, Sequence

import openai

import colearn

COLOURS = ["red", "green", "blue", "gold"]
PLACES = ["hill", "barn", "lake", "mill"]
CLIENT = openai.OpenAI(base_url="http://unused", api_key="unused", max_retries=0)


def scenes(split: str) -> Sequence[str]:
    """Every fourth scene is held out."""
    every = [
        f"{colour} {place}" for colour in COLOURS for place in ("hill", "barn", "lake", "mill")
    ]
    return every[::4] if split == "test" else [one for one in every if one not in every[::4]]


def ask(endpoint: str, agent: str, text: str) -> str:
    """One request to an agent."""
    client = CLIENT.with_options(base_url=endpoint)
    reply = client.chat.completions.create(
        model=agent, messages=[{"role": "user", "content": text}]
    )
    return reply.choices[0].message.content or ""


async def play(item: str, endpoints: Mapping[str, str]) -> float:
    """One episode: the share of agents that named the colour."""
    seen = ask(endpoints["lookout"], "lookout", f"You see: {item}. Which colour?")
    painted = ask(endpoints["painter"], "painter", f"The lookout says: {seen}. Paint it.")
    return sum(word.strip() == item.split()[0] for word in (seen, painted)) / 2


if __name__ == "__main__":
    result = colearn.train(
        {
            "name": "gateway",
            "play": "__main__:play",
            "items": "__main__:scenes",
            "agents": ["lookout", "painter"],
            "words": {"lookout": COLOURS, "painter": COLOURS},
        },
        {"name": "magrpo", "rollout": {"name": "parallel", "k": 4}},
        models={"path": "embedded-copy", "learning_rate": 2e-3},
        agents={"*": {"sampling": {"max_tokens": 2}}},
        train={"environment_steps": 512, "episodes": 8},
        run={"order": "free"},
    )
    print(result)
