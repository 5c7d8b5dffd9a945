"""Experience: what an update takes its trees from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, Literal

from colearn.contract import Cast, Credit, DecPOMDP, Player, Rollout
from colearn.rollout.counts import Counts
from colearn.rollout.grow import grow
from colearn.seeding import derive_rng, derive_seed
from colearn.types import Tree

from .processes import Processes


@dataclass(frozen=True, slots=True)
class At:
    """How far a run is; with the seed it fixes which episodes come next."""

    iteration: int
    """Updates made: the version of the team's weights."""
    episodes: int
    """Rolled out in training before."""
    done: float
    """The share of the training budget that is used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingEpisodes:
    """The training episodes of a run: which items come, and how their trees grow."""

    task: DecPOMDP[Any, Any]
    items: Sequence[Any]
    players: Mapping[str, Player]
    rollout: Rollout
    credit: Credit
    cast: Cast
    seed: int
    """Of the run."""
    count: int
    """In an iteration."""
    order: Literal["lockstep", "free"]

    def draw(self, at: At) -> list[Any]:
        """The next items of an endless sequence of shuffled passes over all of them."""
        chosen = []
        for place in range(at.episodes, at.episodes + self.count):
            turn, number = divmod(place, len(self.items))
            order = derive_rng(self.seed, "items", turn).permutation(len(self.items))
            chosen.append(self.items[int(order[number])])
        return chosen

    def grow(
        self, at: At, items: Sequence[Any], *, first: int = 0, pool: Executor | None = None
    ) -> tuple[list[Tree[Any]], Counts]:
        """Trees of these items of an iteration, the first of which is number `first`, grown by the
        weights as they are now; and what they cost."""
        return grow(
            self.task,
            items,
            {name: player.at(at.done) for name, player in self.players.items()},
            self.rollout,
            credit=self.credit,
            cast=self.cast,
            seed=derive_seed(self.seed, "train"),
            first_episode=at.episodes + first,
            pool=pool,
            order=self.order,
        )


class Experience(ABC):
    """What the updates of a run take their trees from. Every process has one and calls it alike."""

    @abstractmethod
    def take(self, at: At, *, pool: Executor | None = None) -> tuple[Sequence[Tree[Any]], Counts]:
        """Trees for the next update, the same in every process, and what they have cost since the
        last call. `pool` steps tasks. After a resume the first call begins at `at` anew."""

    def published(self, at: At) -> None:  # noqa: B027 - what grows on demand has nothing to do
        """An update is over, and every generator has its weights: those of `at.iteration`."""

    def close(self) -> None:  # noqa: B027 - what grows on demand holds nothing
        """Stop whatever grows; nothing is taken any more."""


@dataclass(frozen=True, slots=True)
class Now(Experience):
    """Trees grow when an update asks for them, from the newest weights; each process grows its
    share."""

    episodes: TrainingEpisodes
    processes: Processes

    def take(self, at: At, *, pool: Executor | None = None) -> tuple[Sequence[Tree[Any]], Counts]:
        first, items = self.processes.share_of(self.episodes.draw(at))
        return self.processes.exchange(*self.episodes.grow(at, items, first=first, pool=pool))
