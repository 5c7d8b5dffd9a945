# Hardware: Two CPU cores, no download, about 1 minute.
# Shows: a workflow of two roles with a tool, trained by MHGPO.
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import colearn
from colearn.programs.workflow import Tool, Workflow

FACTS = {"owl": "hunts by night", "bee": "dances the way", "ox": "pulls the plough"}
WORDS = sorted({word for fact in FACTS.values() for word in fact.split()} | set(FACTS))


async def look_up(animal: str) -> str:
    """The fact about an animal."""
    return FACTS.get(animal.strip(), "nothing")


class Quiz(Workflow[str]):
    """The asker names an animal for the tool; the answerer reads what the tool returned."""

    agents, horizon, measures = ("asker", "answerer"), 2, ("right",)
    tools = (Tool(look_up, timeout=5.0),)

    def items(self, split: str) -> Sequence[str]:
        return list(FACTS)

    async def run(self, team: Any, item: str) -> None:
        query = await team.asker(f"What does the {item} do? Name one animal.")
        answer = await team.answerer(f"{await team.look_up(query)}. What does the {item} do?")
        right = len(set(answer.split()) & set(FACTS[item].split())) / 3
        team.measure(right=right)
        team.reward(right)

    def legal_action(self, state: Any, agent: str, rng: np.random.Generator) -> str:
        return " ".join(rng.choice(WORDS, size=1 if agent == "asker" else 3))


if __name__ == "__main__":
    result = colearn.train(
        Quiz(),
        "mhgpo",
        models={"path": "embedded-copy", "learning_rate": 1e-3},
        agents={"*": {"sampling": {"max_tokens": 6}}},
        train={"environment_steps": 2400, "episodes": 16},
    )
    print(result)
