"""Weight sync: learners publish their weights; engines that hold a separate copy load them.

`models/weight_update.py` makes the weight updates, and `training/hosts/local_team.py` sets the
learners from which each engine loads updates. `TransformersEngine` loads updates into a copy of the
model; `CheckedEngine` loads updates for all other engines.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightUpdate:
    """A model's weights after `version` optimiser steps, as whole tensors on every process.

    The tensors may be the model's live tensors, so a receiver that keeps tensors after the call
    must copy them.
    """

    version: int
    full: Mapping[str, Tensor] | None = None
    """The base's weights by checkpoint name, with tied weights under each of their names; None if
    an adapter is trained."""
    adapters: Mapping[str, Mapping[str, Tensor]] = field(default_factory=dict)
    """Weights by adapter name, and then by the names that peft uses in its files."""


Publish = Callable[[], WeightUpdate]
"""Makes a `WeightUpdate` of the current weights; every process must call this function."""


class WeightSync(ABC):
    """The part of a generator that keeps the generator's weights equal to the learners' weights.

    A generator that always reads the learners' live weights has nothing to load. A generator that
    holds other weights, always or by its settings, inherits `LoadedWeights`.
    """

    lags: bool = False
    """Whether the learners' weights may be newer than the generator's weights
    (`train.staleness`)."""
    gap: float | None = None
    """Largest difference, in nats, between the log-probabilities of the generator and of the
    trained model in the last check; None without a check."""

    def follow(self, sources: Sequence[Publish]) -> None:  # noqa: B027 - it may read live weights
        """Set the sources from which `sync` loads the weights of the generator's models."""

    @abstractmethod
    def sync(self) -> None:
        """Load the learners' current weights; called after each update."""

    def version(self, agent: str) -> int | None:
        """Version of the weights for this agent's next request; None: the learner's live
        weights."""
        return None


class LoadedWeights(WeightSync):
    """Weight sync of a generator that has separate weights (a copy, an engine, a server). The
    generator loads the weights that its sources publish, and records the version of these
    weights."""

    def __init__(self) -> None:
        self._sources: tuple[Publish, ...] = ()
        self._versions: dict[str | None, int] = {}

    def follow(self, sources: Sequence[Publish]) -> None:
        self._sources = tuple(sources)

    def sync(self) -> None:
        """Errors: as for `load`."""
        self.load([publish() for publish in self._sources])

    @abstractmethod
    def load(self, updates: Sequence[WeightUpdate]) -> None:
        """Load the updates' weights, then call `loaded`."""

    def loaded(self, updates: Sequence[WeightUpdate]) -> None:
        """Record the versions of updates that have been loaded."""
        for update in updates:
            names = update.adapters if update.full is None else (None,)
            self._versions |= dict.fromkeys(names, update.version)

    @abstractmethod
    def adapter(self, agent: str) -> str | None:
        """Name of the agent's adapter; None: the agent uses the base model without an adapter."""

    def version(self, agent: str) -> int | None:
        return self._versions.get(self.adapter(agent), 0)
