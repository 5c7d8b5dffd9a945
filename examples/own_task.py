# Hardware: Two CPU cores, no download, about 1 minute.
# Shows: a task of your own, checked and trained by MAGRPO.
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

import colearn
from colearn.contract import DecPOMDP
from colearn.contract.testing import check_task
from colearn.contract.types import Outcome

WORDS = ("stone", "paper", "water")


@dataclass(frozen=True)
class Place:
    word: str
    met: bool = False


class Meeting(DecPOMDP[str, Place]):
    """One agent reads a place, the other does not: after the first answers both should name it."""

    agents, horizon = ("guide", "guest"), 2

    def items(self, split: str) -> Sequence[str]:
        return WORDS

    def reset(self, item: str, rng: np.random.Generator) -> Place:
        return Place(item)

    def observe(self, state: Place, agent: str) -> str:
        return f"Meet at the {state.word}." if agent == "guide" else "Where do you meet?"

    def step(
        self, state: Place, actions: Mapping[str, str], rng: np.random.Generator
    ) -> Outcome[Place]:
        right = [text.strip() == state.word for text in actions.values()]
        return Outcome(state=Place(state.word, all(right)), reward=sum(right) / 2, done=all(right))

    def metrics(self, state: Place) -> Mapping[str, float]:
        return {"met": float(state.met)}

    def legal_action(self, state: Place, agent: str, rng: np.random.Generator) -> str:
        return str(rng.choice(WORDS))  # the embedded model is warm-started on these


if __name__ == "__main__":
    check_task(task := Meeting())
    result = colearn.train(
        task,
        "magrpo",
        models={"path": "embedded-copy", "learning_rate": 1e-3},
        train={"environment_steps": 2000, "episodes": 32, "minibatch": 16},
    )
    print(result)
