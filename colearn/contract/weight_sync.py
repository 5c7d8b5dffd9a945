"""Weight sync: updates from learners, and the interface of generators that load them."""

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

    The tensors may be the live ones: a receiver that keeps them beyond the call must copy them.
    """

    version: int
    full: Mapping[str, Tensor] | None = None
    """The base's weights by checkpoint name, tied weights under each of their names; None if an
    adapter is trained."""
    adapters: Mapping[str, Mapping[str, Tensor]] = field(default_factory=dict)
    """By adapter name, its weights under the names of peft's files."""


Publish = Callable[[], WeightUpdate]
"""Makes a `WeightUpdate` of the current weights; every process calls it."""


class WeightSync(ABC):
    """The part of a generator that keeps its weights equal to the learners'.

    A generator in the learners' process reads their live weights and has nothing to load; a remote
    one (vLLM, a server) loads them from its sources at each `sync`.
    """

    lags: bool = False
    """Whether the learners may be ahead of its weights (`train.staleness`)."""

    def follow(self, sources: Sequence[Publish]) -> None:  # noqa: B027 - it may read live weights
        """Set the sources from which `sync` loads the weights of its models."""

    @abstractmethod
    def sync(self) -> None:
        """Load the learners' current weights; called after each update."""

    def version(self, agent: str) -> int | None:
        """Version of the weights for this agent's next request; None: the learner's live
        weights."""
        return None
