"""Concise credit (MARSHAL): another credit plus a bonus for short replies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from colearn.contract.reward_credit import Credit, Rewarded
from colearn.contract.types import Rewards, Tree
from colearn.errors import ConfigError

from .payoff import Payoff


@dataclass(frozen=True, kw_only=True)
class Concise(Credit):
    """Adds a bonus for each reply to the credit that `of` computes. For a reply of l tokens, the
    bonus is weight * max(0, 1 - (l - shortest) / (longest - shortest)) (MARSHAL, Eq. 4).

    Wrong when good replies are long: the bonus then rewards omissions. Actions of programs have no
    tokens and get no bonus.
    """

    of: Credit = field(default_factory=Payoff)
    """The credit to which the bonus is added."""
    weight: float = 0.5
    """alpha: the weight of the bonus."""
    shortest: int = 11
    """l_min: the reply length in tokens at which the bonus equals `weight`."""
    longest: int = 2048
    """l_max: the reply length in tokens at which the bonus reaches 0."""

    at_once = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.shortest < self.longest:
            raise ConfigError(
                f"longest: must lie above shortest, got {self.longest} and {self.shortest}"
            )
        object.__setattr__(self, "reads", self.of.reads)

    def step(self, paid: Rewarded, agents: Sequence[str]) -> Mapping[str, float]:
        """Return the credit that `of` computes, without the bonus, because the lengths of replies
        are not known to this method."""
        return self.of.step(paid, agents)

    def __call__(self, tree: Tree[Any]) -> Rewards:
        credited = [dict(base) for base in self.of(tree)]
        for node in tree.nodes:
            for agent, action in node.actions.items():
                if action.tokens:
                    base = credited[node.index].get(agent, 0.0)
                    credited[node.index][agent] = base + self.reward(len(action.tokens))
        return tuple(credited)

    def reward(self, tokens: int) -> float:
        """Return the bonus of one reply with `tokens` tokens."""
        line = 1.0 - (tokens - self.shortest) / (self.longest - self.shortest)
        return self.weight * max(0.0, line)
