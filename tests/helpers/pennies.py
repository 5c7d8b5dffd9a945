"""Small games with payoffs of their own, whose equilibria are known by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from colearn.contract import DecPOMDP
from colearn.contract.types import Outcome

PAYOFF = ((2.0, -1.0), (-1.0, 1.0))
"""What `row` wins and `column` loses. At the equilibrium both say heads with probability 2/5
(3p - 1 = 1 - 2p), and the game is worth 1/5 to `row`."""
WORDS = ("heads", "tails")


@dataclass(frozen=True)
class Shown:
    """Whether the coins lie open, and how."""

    said: tuple[str, ...] = ()


class Pennies(DecPOMDP[str, Shown]):
    """Matching pennies in which two heads count double: zero-sum, one turn, all payoffs local."""

    agents = ("row", "column")
    horizon = 1
    pays = frozenset({"local"})

    def items(self, split: str) -> Sequence[str]:
        return ("coins",)

    def reset(self, item: str, rng: np.random.Generator) -> Shown:
        return Shown()

    def observe(self, state: Shown, agent: str) -> str | None:
        return f"{agent}: heads or tails"

    def step(
        self, state: Shown, actions: Mapping[str, str], rng: np.random.Generator
    ) -> Outcome[Shown]:
        said = tuple(actions[agent].strip() for agent in self.agents)
        if any(word not in WORDS for word in said):
            wrong = {agent: -2.0 * (actions[agent].strip() not in WORDS) for agent in self.agents}
            return Outcome(state=Shown(said), reward=0.0, done=True, local_rewards=wrong)
        won = PAYOFF[WORDS.index(said[0])][WORDS.index(said[1])]
        payoffs = {"row": won, "column": -won}
        return Outcome(state=Shown(said), reward=0.0, done=True, local_rewards=payoffs)

    def metrics(self, state: Shown) -> Mapping[str, float]:
        return {"legal": float(all(word in WORDS for word in state.said))}

    def legal_action(self, state: Shown, agent: str, rng: np.random.Generator) -> str:
        return str(rng.choice(WORDS))


def exploitability(heads: Mapping[str, float]) -> float:
    """What both players together could win by answering each other's policy at its best: 0 at the
    equilibrium, 1/2 where both toss a fair coin."""
    row, column = (np.array([p, 1.0 - p]) for p in (heads["row"], heads["column"]))
    table: Any = np.array(PAYOFF)
    return float((table @ column).max() - (row @ table).min())
