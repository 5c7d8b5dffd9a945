"""League cast: opponents are past selves, sampled by how difficult each past self is to beat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan, nan
from typing import Any, Literal

import numpy as np

from colearn.contract import Cast
from colearn.contract.bounds import Count, Positive, Share
from colearn.contract.player import past_self
from colearn.contract.scored import as_number, mean_scored
from colearn.contract.types import Tree


@dataclass(frozen=True, kw_only=True)
class League(Cast):
    """After each period of `every` iterations, a copy of the trained models enters the pool. In
    episode e, agent e mod n plays its current policy. Every other agent is played by a past self of
    that agent. The pool slot of the past self is drawn separately for each agent. In a fraction
    `self_play` of episodes, and while the pool is empty, all agents play their current policies.

    A slot's win rate w is the current policy's win rate against that slot. An episode counts as 1
    if the agent with the current policy has a higher payoff than its opponent, as 1/2 if both
    payoffs are equal, and as 0 otherwise. The estimate starts from one win and one loss, and the
    weight of older episodes decays. Payoffs are the task's metrics `payoff_AGENT`, which exclude
    rewards for format and brevity. Without `payoff_AGENT` metrics, credited returns are used.

    Slots are drawn with probability proportional to (1 - w)^power ("hard") or w (1 - w) ("even"),
    or uniformly ("uniform": fictitious play against the mean of past policies). "hard" and "even"
    are prioritised fictitious self-play (AlphaStar).

    Wrong when returns do not show which player is stronger, as in a team: all slots then have equal
    weight. Each slot holds a copy of every trained model, or of the model's adapter with LoRA.
    """

    pool: Count = 4
    """Number of slots in the pool. When all slots are filled, a new past self replaces the oldest
    past self."""
    every: Count = 20
    """Number of iterations between two additions to the pool."""
    self_play: Share = 0.5
    """Fraction of episodes in which no past self plays. These episodes are drawn at random."""
    weigh: Literal["hard", "even", "uniform"] = "hard"
    """Rule that computes the probability of drawing a slot from the slot's win rate."""
    power: Positive = 2.0
    """Exponent of 1 - w for "hard"."""
    decay: Share = 0.9
    """Factor by which the weight of an episode is multiplied in each later iteration."""
    _memory: dict[str, float] = field(default_factory=dict, init=False, repr=False, compare=False)

    def seats(
        self,
        item: Any,
        episode: int,
        agents: Sequence[str],
        players: Sequence[str],
        rng: np.random.Generator,
    ) -> Mapping[str, str]:
        members = self.members
        if not members or rng.random() < self.self_play:
            return {agent: agent for agent in agents}
        weights = np.array([self.weight(slot) for slot in members])
        own_seat = agents[episode % len(agents)]
        seats = {}
        for agent in agents:
            slot = members[int(rng.choice(len(members), p=weights / weights.sum()))]
            past = past_self(agent, slot)
            seats[agent] = past if agent != own_seat and past in players else agent
        return seats

    def settle(self, episodes: Sequence[Tree[Any]]) -> int | None:
        memory = self._memory
        for key in [key for key in memory if "/" in key]:
            memory[key] *= self.decay
        for episode in episodes:
            self._count(episode)
        memory["iterations"] = memory.get("iterations", 0.0) + 1.0
        if memory["iterations"] % self.every:
            return None
        slot = int(memory.get("taken", 0.0)) % self.pool
        memory["taken"] = memory.get("taken", 0.0) + 1.0
        memory[f"games/{slot}"] = memory[f"score/{slot}"] = 0.0
        return slot

    def state(self) -> Mapping[str, float]:
        return dict(self._memory)

    def restore(self, state: Mapping[str, float]) -> None:
        self._memory.clear()
        self._memory.update(state)

    @property
    def members(self) -> tuple[int, ...]:
        """Indices of the filled slots."""
        return tuple(range(min(self.pool, int(self._memory.get("taken", 0.0)))))

    def win_rate(self, slot: int) -> float:
        """Return the win rate of the current policy against a slot."""
        memory = self._memory
        return (memory[f"score/{slot}"] + 1.0) / (memory[f"games/{slot}"] + 2.0)

    def weight(self, slot: int) -> float:
        """Return the unnormalised probability of drawing a slot."""
        rate = self.win_rate(slot)
        if self.weigh == "uniform":
            return 1.0
        return float((1.0 - rate) ** self.power) if self.weigh == "hard" else rate * (1.0 - rate)

    def _count(self, episode: Tree[Any]) -> None:
        """Counts an episode in which one agent played against past selves."""
        slots = {
            agent: slot
            for agent in episode.agents
            for slot in self.members
            if episode.player(agent) == past_self(agent, slot)
        }
        own_seats = [agent for agent in episode.agents if agent not in slots]
        if not slots or len(own_seats) != 1:
            return
        payoff = _payoff(episode, own_seats[0])
        for agent, slot in slots.items():
            margin = payoff - _payoff(episode, agent)
            if isnan(margin):
                continue  # the game was not scored
            self._memory[f"games/{slot}"] += 1.0
            self._memory[f"score/{slot}"] += 0.5 * (1.0 + float(np.sign(margin)))


def _payoff(episode: Tree[Any], agent: str) -> float:
    """Return a player's payoff, averaged over branches. A branch that was truncated has not been
    paid."""
    name = f"payoff_{agent}"
    ends = [leaf for leaf in episode.leaves() if name in leaf.metrics]
    if ends:
        return mean_scored(nan if end.truncated else as_number(end.metrics[name]) for end in ends)
    return episode.returns_of(agent)[0]
