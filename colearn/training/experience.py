"""Experience: the source of rollout trees for updates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from colearn.contract import Cast, Credit, DecPOMDP, Player, Rollout
from colearn.contract.seeding import derive_rng, derive_seed
from colearn.contract.types import Tree
from colearn.rollout.counts import Counts
from colearn.rollout.grow import grow

from .processes import Grown, Processes


@dataclass(frozen=True, slots=True)
class TrainingPoint:
    """A point in a run's training; this point and the seed determine the next episodes."""

    iteration: int
    """Number of updates so far, which is the version of the team's weights."""
    episodes: int
    """Number of training episodes so far."""
    done: float
    """Fraction of the training budget used so far."""


@dataclass(kw_only=True)
class Experience:
    """The source of trees for a run's updates: selects items and grows their trees, on demand and
    with the newest weights. Every process has a separate instance, all processes make the same
    calls, and each process grows its share of the trees."""

    task: DecPOMDP[Any, Any]
    items: Sequence[Any]
    players: Mapping[str, Player]
    rollout: Rollout
    credit: Credit
    cast: Cast
    seed: int
    """The run's seed."""
    count: int
    """Number of episodes per iteration."""
    order: Literal["lockstep", "free"]
    processes: Processes
    at_once: int | None = None
    """Maximum number of episodes that grow at the same time in each process; None: all."""

    def draw(self, at: TrainingPoint) -> list[Any]:
        """Returns the next items of an endless sequence of shuffled passes over all items."""
        chosen = []
        for place in range(at.episodes, at.episodes + self.count):
            turn, number = divmod(place, len(self.items))
            order = derive_rng(self.seed, "items", turn).permutation(len(self.items))
            chosen.append(self.items[int(order[number])])
        return chosen

    def grow(
        self,
        at: TrainingPoint,
        items: Sequence[Any],
        *,
        first: int = 0,
        pool: Executor | None = None,
    ) -> Grown:
        """Returns the trees of these items, grown with the current weights, and the cost counts of
        these trees. `first` is the index of the first item within the iteration."""
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
            at_once=self.at_once,
        )

    def take(
        self, at: TrainingPoint, *, pool: Executor | None = None
    ) -> tuple[Sequence[Tree[Any]], Counts]:
        """Returns the trees for the next update, which are identical on all ranks, and the cost
        counts since the last call. `pool` runs the steps of tasks. The first call after a resume
        starts at `at`."""
        first, items = self.processes.share_of(self.draw(at))
        return self.processes.exchange(lambda: self.grow(at, items, first=first, pool=pool))

    def sampled_at(self, at: TrainingPoint) -> float:
        """Returns the used fraction of the training budget that determined the sampling
        temperatures of the trees taken at `at`."""
        return at.done

    def refresh(self, at: TrainingPoint) -> bool:
        """Called after the update that ends at `at`. Returns whether generators must now receive
        the weights. When it returns True, all trees that use the previous weights have been
        finished."""
        return True

    def settle(self) -> None:
        """Wait until generators are idle, for an evaluation or new weights."""

    def metrics(self) -> dict[str, float]:
        """Metrics of the trees that `take` returned last."""
        return {}

    def save(self, folder: Path) -> None:
        """Write the state to the folder of the learners' states; only the main process calls
        this."""

    def restore(self, folder: Path, at: TrainingPoint) -> None:
        """Restore the state of a checkpoint, after the learners have loaded their states.

        Errors: CheckpointError for a state that cannot be read.
        """

    def close(self) -> None:
        """Stop growing trees; `take` must not be called again."""
