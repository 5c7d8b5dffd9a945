"""Two agents of plain `openai` calls: a lookout sees a scene, a painter is told what it said."""

from __future__ import annotations

from collections.abc import Mapping

import openai

CLIENT = openai.OpenAI(base_url="http://unused", api_key="unused", max_retries=0)
"""One for all episodes: creating a client costs more than a call. `with_options` shares it."""


def say(endpoint: str, agent: str, text: str) -> str:
    """Returns the answer of one chat completion."""
    client = CLIENT.with_options(base_url=endpoint)
    messages = [{"role": "user", "content": text}]
    answer = client.chat.completions.create(model=agent, messages=messages)
    return answer.choices[0].message.content or ""


async def play(item: str, endpoints: Mapping[str, str]) -> dict[str, str]:
    """Plays one episode. `scenes.grade` computes the reward from the result."""
    told = say(endpoints["lookout"], "lookout", f"You see: {item}. Which colour?")
    painted = say(endpoints["painter"], "painter", f"The lookout says: {told}. Paint it.")
    return {"lookout": told, "painter": painted}
