"""Two agents of plain `openai` calls: a lookout sees a colour, a painter is told what it said.

The painter is paid for the colour of the lookout, so the two must come to agree on words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import openai

COLOURS = ("red", "green", "blue", "gold")
CLIENT = openai.OpenAI(base_url="http://unused", api_key="unused", max_retries=0)
"""One for all episodes: making a client costs more than a call. `with_options` shares it."""


def items(split: str) -> Sequence[str]:
    """Held-out ones are scenes that training has not shown."""
    places = ("hill", "barn", "lake") if split == "train" else ("mill",)
    return [f"{colour} {place}" for colour in COLOURS for place in places]


def say(endpoint: str, agent: str, text: str) -> str:
    """One chat completion."""
    client = CLIENT.with_options(base_url=endpoint)
    messages = [{"role": "user", "content": text}]
    answer = client.chat.completions.create(model=agent, messages=messages)
    return answer.choices[0].message.content or ""


async def play(item: str, endpoints: Mapping[str, str]) -> float:
    """The program: what it returns is the team's reward."""
    told = say(endpoints["lookout"], "lookout", f"You see: {item}. Which colour?")
    painted = say(endpoints["painter"], "painter", f"The lookout says: {told}. Paint it.")
    return float(painted.strip() == item.split()[0])
