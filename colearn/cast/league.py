"""A league: past selves as opponents, sampled by how hard they are to beat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from colearn.bounds import Count, Positive, Share
from colearn.contract import Cast
from colearn.contract.player import past_self
from colearn.types import Credited


@dataclass(frozen=True, kw_only=True)
class League(Cast):
    """Every so many iterations the models go into a pool as they are. In a share of the episodes
    agent e modulo their number plays itself and every other seat is taken by its own past self from
    a slot drawn anew; in the rest, and until the pool has a first member, all play themselves.

    A slot's win rate w is that of the policy of now against it: an episode counts 1, 1/2 or 0 as
    the kept agent's payoff is above, equal to or below its opponent's, with one game won and one
    lost beforehand, and older iterations weigh less. Payoffs are the task's metrics `payoff_AGENT`,
    which leave rewards for form and brevity out; where there are none, credited returns.

    Slots are drawn in proportion to (1 - w)^power ("hard"), w (1 - w) ("even"), or all alike
    ("uniform": fictitious play against the mean of past policies). The first two are prioritised
    fictitious self-play (AlphaStar).

    Wrong where returns do not tell who is stronger, as in a team: all slots are then alike. Each
    slot holds a copy of every trained model (of its adapter, where it is one).
    """

    pool: Count = 4
    """Slots; the oldest past self makes place for a new one."""
    every: Count = 20
    """Iterations between two past selves."""
    self_play: Share = 0.5
    """Share of episodes without past selves, drawn."""
    weigh: Literal["hard", "even", "uniform"] = "hard"
    power: Positive = 2.0
    """Of 1 - w, for "hard"."""
    decay: Share = 0.9
    """What a game of the iteration before weighs."""
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
        kept = agents[episode % len(agents)]
        seats = {}
        for agent in agents:
            slot = members[int(rng.choice(len(members), p=weights / weights.sum()))]
            past = past_self(agent, slot)
            seats[agent] = past if agent != kept and past in players else agent
        return seats

    def settle(self, episodes: Sequence[Credited[Any]]) -> int | None:
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
        """The slots that hold a past self."""
        return tuple(range(min(self.pool, int(self._memory.get("taken", 0.0)))))

    def win_rate(self, slot: int) -> float:
        """Of the policy of now against a slot."""
        memory = self._memory
        return (memory[f"score/{slot}"] + 1.0) / (memory[f"games/{slot}"] + 2.0)

    def weight(self, slot: int) -> float:
        """What a slot is drawn in proportion to."""
        rate = self.win_rate(slot)
        if self.weigh == "uniform":
            return 1.0
        return float((1.0 - rate) ** self.power) if self.weigh == "hard" else rate * (1.0 - rate)

    def _count(self, episode: Credited[Any]) -> None:
        """An episode of one agent against past selves."""
        tree = episode.tree
        slots = {
            agent: slot
            for agent in tree.agents
            for slot in self.members
            if tree.player(agent) == past_self(agent, slot)
        }
        kept = [agent for agent in tree.agents if agent not in slots]
        if not slots or len(kept) != 1:
            return
        own = _payoff(episode, kept[0])
        for agent, slot in slots.items():
            margin = own - _payoff(episode, agent)
            self._memory[f"games/{slot}"] += 1.0
            self._memory[f"score/{slot}"] += 0.5 * (1.0 + float(np.sign(margin)))


def _payoff(episode: Credited[Any], agent: str) -> float:
    """What a player got out of the game, a mean over branches."""
    name = f"payoff_{agent}"
    ends = [leaf.metrics for leaf in episode.tree.leaves() if name in leaf.metrics]
    if ends:
        return float(np.mean([metrics[name] for metrics in ends]))
    return episode.returns(agent)[0]
