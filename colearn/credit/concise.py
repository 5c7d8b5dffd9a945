"""A player's payoff and a reward for short replies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from colearn.contract.credit import Credit, Rewarded
from colearn.errors import ConfigError
from colearn.types import Rewards, Tree

from .payoff import Payoff


@dataclass(frozen=True, kw_only=True)
class Concise(Credit):
    """What `of` credits, and for each reply of l tokens
    weight * max(0, 1 - (l - shortest) / (longest - shortest)) (MARSHAL, Eq. 4).

    Wrong when a good reply is long: it then pays to say less. Actions of programs have no tokens
    and earn nothing.
    """

    of: Credit = field(default_factory=Payoff)
    weight: float = 0.5
    """alpha"""
    shortest: int = 11
    """l_min, tokens."""
    longest: int = 2048
    """l_max, tokens."""
    only_beyond: bool = False
    """As the authors' code does: nothing up to l_max, beyond it the same line, which is then below
    0."""

    at_once = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.shortest < self.longest:
            raise ConfigError(
                f"longest: must lie above shortest, got {self.longest} and {self.shortest}"
            )
        object.__setattr__(self, "reads", self.of.reads)

    def step(self, paid: Rewarded, agents: Sequence[str]) -> Mapping[str, float]:
        """Without the lengths, which an edge alone does not tell."""
        return self.of.step(paid, agents)

    def __call__(self, tree: Tree[Any]) -> Rewards:
        found = [dict(own) for own in self.of(tree)]
        for node in tree.nodes:
            for agent, action in node.actions.items():
                if action.tokens:
                    own = found[node.index].get(agent, 0.0)
                    found[node.index][agent] = own + self.reward(len(action.tokens))
        return tuple(found)

    def reward(self, tokens: int) -> float:
        """Of one reply."""
        line = 1.0 - (tokens - self.shortest) / (self.longest - self.shortest)
        if self.only_beyond:
            return self.weight * min(0.0, line)
        return self.weight * max(0.0, line)
