"""The player: a model, program or server that acts for an agent."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from colearn.bounds import check_bounds
from colearn.types import Action, Credited, Observation, Prompt

from .task import DecPOMDP


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A seat in which somebody is to act, once for each seed."""

    player: Player
    seat: str
    task: DecPOMDP[Any, Any]
    state: Any
    observation: Observation
    memory: Any
    """What the player kept of this seat's history; None where a context begins."""
    seeds: tuple[int, ...]


class Said(str):
    """An action's text, for a task that also reads how it was sampled (`reads_actions`)."""

    action: Action
    player: Player

    @classmethod
    def of(cls, action: Action, player: Player) -> Said:
        said = cls(action.text)
        said.action, said.player = action, player
        return said


@dataclass(frozen=True, slots=True)
class Spoken:
    """An action, and what its player keeps of the history that now ends in it."""

    action: Action
    memory: Any = None


class Table(ABC):
    """Where players are asked together: those of one generator share one, a program has its own.

    Tables of different places are asked at the same time, each place in a thread of its own.
    """

    @property
    def place(self) -> Hashable:
        """Tables of one place take turns."""
        return id(self)

    @abstractmethod
    def speak(self, asks: Sequence[Ask], *, greedy: bool = False) -> list[list[Spoken]]:
        """One list of actions for each ask, one action for each seed, in order. The draw of a seed
        depends on the seed and the history alone."""


class AsyncTable(Table):
    """Players who answer one by one, from elsewhere: none waits for a batch or for another."""

    @abstractmethod
    async def say(self, ask: Ask, *, greedy: bool = False) -> list[Spoken]:
        """One action for each seed, in order; any number of asks may be under way."""

    def speak(self, asks: Sequence[Ask], *, greedy: bool = False) -> list[list[Spoken]]:
        return asyncio.run(self.say_all(asks, greedy=greedy))

    async def say_all(self, asks: Sequence[Ask], *, greedy: bool = False) -> list[list[Spoken]]:
        """All of them at once."""
        return list(await asyncio.gather(*(self.say(ask, greedy=greedy) for ask in asks)))


class Player(ABC):
    """A language model, a program or a server; an episode's cast says who sits where.

    Only language models whose weights are trained enter an update.
    """

    @property
    @abstractmethod
    def table(self) -> Table:
        """Who is asked with it in one call."""

    @property
    def draws_candidates(self) -> bool:
        """Several of its actions at one node are worth comparing. Those of a program are not."""
        return True

    def read(self, prompt: Prompt, last: Action | None) -> Observation:
        """How a prompt enters the history whose last action is `last`; None: a context begins."""
        return Observation(
            prompt.whole, (), prompt.fresh, prompt.made_from, prompt.limits, prompt.system
        )

    def spell(self, action: Action) -> Sequence[str]:
        """The text of each token of an action; empty for who speaks in texts."""
        return ()

    def at(self, done: float) -> Player:
        """The player as it is sampled in training when the share `done` of the budget is used."""
        return self

    def version(self) -> int:
        """Of its weights; 0 for who has none that change."""
        return 0

    def close(self) -> None:  # noqa: B027 - most players hold nothing beyond Python's own memory
        """Give back what it holds outside this process."""


def past_self(agent: str, slot: int) -> str:
    """The name of an agent's own player as it was a while ago, in a slot of a cast's pool."""
    return f"{agent}@{slot}"


class Cast(ABC):
    """A strategy: who sits in which seat in an episode (seat swaps, past selves, partners)."""

    pool: int = 0
    """Slots for past selves: each holds every trained model as it was at some iteration."""

    def __post_init__(self) -> None:
        """Errors: ConfigError for a setting outside of its bounds."""
        check_bounds(self)

    @abstractmethod
    def seats(
        self,
        item: Any,
        episode: int,
        agents: Sequence[str],
        players: Sequence[str],
        rng: np.random.Generator,
    ) -> Mapping[str, str]:
        """A player's name for every agent of the task. Every agent's own player has its name, its
        past selves those of `past_self`."""

    def settle(self, episodes: Sequence[Credited[Any]]) -> int | None:
        """What came of an iteration's episodes, once it is over; for casts with a pool. Gives the
        slot that the models as they are now go into; None leaves the pool as it is."""
        return None

    def state(self) -> Mapping[str, float]:
        """What it remembers of its games; it is in the checkpoint."""
        return {}

    def restore(self, state: Mapping[str, float]) -> None:
        """Go on from what `state` gave."""
        if state:
            raise TypeError(f"{type(self).__name__} remembers nothing")


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What a program is asked with. It may look at the whole state: a search needs the world, and
    what it ought not to use is for its author to leave alone."""

    task: DecPOMDP[Any, Any]
    state: Any
    seat: str
    text: str
    """What the seat is shown."""
    rng: np.random.Generator
    """All of its randomness, so that an episode repeats."""


@runtime_checkable
class Acts(Protocol):
    """A program: any object with this method."""

    def act(self, view: View) -> str:
        """What to say, a function of the view alone."""
        ...
