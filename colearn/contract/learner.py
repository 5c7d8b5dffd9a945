"""Learner interface: one trained model or critic; forward, backward, step, state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from .timeline import Timed

if TYPE_CHECKING:
    from torch import Tensor

    from .rows import Outputs, Row, RowBatch
    from .weight_sync import WeightUpdate


class Objective(Protocol):
    """The loss of one minibatch as a frozen, picklable value without side effects: a learner may
    run in another process."""

    def __call__(self, outputs: Outputs, batch: RowBatch, /) -> tuple[Tensor, dict[str, float]]:
        """A micro-batch's share of the minibatch's loss (see `PolicyLoss`), and metrics to sum over
        micro-batches."""


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """Rows that one learner has cut into micro-batches, reused in every epoch."""

    groups: tuple[tuple[Row, ...], ...]


@dataclass(frozen=True, slots=True)
class Accumulated:
    """The result of `Learner.accumulate`, identical on every rank."""

    metrics: Mapping[str, float]
    """Sums over the micro-batches."""
    values: Mapping[tuple[int, int], tuple[float, ...]]
    """The value head's outputs at the marks of each row that has marks, by (index of the group,
    index within the group)."""


class WeightCopy(ABC):
    """A learner's trained weights as they were at one time, kept where the learner is."""

    steps: int
    """Version of these weights: the number of optimiser steps."""

    @abstractmethod
    def put(self) -> None:
        """Give the learner these weights and their version; its optimiser stays as it is."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write the weights. Errors: OSError if the file cannot be written."""

    @abstractmethod
    def load(self, folder: Path, steps: int) -> None:
        """Replace these weights with saved weights of version `steps`.

        Errors: CheckpointError for a missing, truncated or foreign file.
        """


class Learner(Timed, ABC):
    """One optimiser over one trained model (an actor, a critic, or an actor with a value head).

    `prepare` cuts rows into micro-batches by a token budget. `accumulate` runs the forward and
    backward passes over these. `step` makes one optimiser step from the accumulated gradient. Every
    process calls these methods with the same rows in the same order and works on its share of them.
    An objective returns parts of a sum, so the gradient does not depend on the micro-batch size or
    the number of processes.
    """

    name: str
    steps: int
    """Number of optimiser steps so far: the version of its weights."""

    @abstractmethod
    def evaluate(
        self, groups: Sequence[Sequence[Row]], *, reference: bool = False
    ) -> list[list[Outputs]]:
        """Teacher-forced outputs without gradient, one per row, on the CPU, on every process.

        `reference`: use the base without its adapter, which is the reference policy.
        """

    @abstractmethod
    def prepare(self, groups: Sequence[Sequence[Row]]) -> Prepared:
        """Cut rows into micro-batches; all rows of a group are in the same micro-batch."""

    @abstractmethod
    def accumulate(self, prepared: Prepared, objective: Objective) -> Accumulated:
        """Run the forward and backward passes over rows that this learner has prepared.

        Errors: FloatingPointError in every process, naming the loss that is not finite.
        """

    @abstractmethod
    def step(self, done: float) -> dict[str, float]:
        """Clip the gradient, make an optimiser step and zero the gradient; returns grad_norm and
        learning_rate.

        `done` is the used fraction of the training budget; it sets the scheduled learning rate.
        Errors: FloatingPointError for a non-finite gradient norm, before the weights change.
        """

    @abstractmethod
    def observe(self, returns: Sequence[float], centre: float) -> None:
        """Update the value head's scale from returns (the same on all ranks) and their `centre`."""

    @abstractmethod
    def shift(self, by: float) -> None:
        """Add a constant to all of the value head's values."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Save weights, optimiser and schedule without loss of precision, as safetensors and
        JSON."""

    @abstractmethod
    def load(self, folder: Path) -> None:
        """The inverse of `save`. Errors: CheckpointError for a truncated or foreign file."""

    @abstractmethod
    def copy(self) -> WeightCopy:
        """A copy of the current trained weights."""

    @abstractmethod
    def publish(self) -> WeightUpdate:
        """The current weights, for generators; every process calls it."""

    @abstractmethod
    def weights(self) -> dict[str, Any]:
        """Trained weights by transformers (or peft) name, for generators and export."""


@dataclass(frozen=True, slots=True)
class MemoryFootprint:
    """Memory of one process for one network, in bytes, on the network's device."""

    weights: int
    """Bytes of weights between updates."""
    gradients: int
    """Bytes of gradients, held from the network's forward pass to its optimiser step."""
    adam: int
    master: int = 0
    """Bytes of a second copy of trained weights, such as ZeRO's copy of the rank's partition."""
    step: int = 0
    """Bytes of temporary memory during an optimiser step."""
    updating: int | None = None
    """Bytes of weights during the network's own update; None: equal to `weights`."""
    gradients_stay: bool = False
    """Whether the gradients' memory is never freed."""
    offloaded: int = 0
    """Additional bytes in the CPU's memory."""


class LearnerConstructor(Protocol):
    """A learner's class, or a function that calls it with the kind's own settings."""

    def __call__(
        self, name: str, network: Any, settings: Any, *, token_budget: int, entropy: bool = False
    ) -> Learner:
        """A learner of `network` with the model's or critic's `settings`. Micro-batches hold up to
        `token_budget` tokens; `entropy` states whether the loss receives the entropy.

        Errors: ConfigError for settings that this kind does not support.
        """


class LearnerKind(ABC):
    """Settings of a kind of learner, as a frozen dataclass. It names the constructor of a run's
    learners and estimates their memory for the dry run. Importing it does not import torch."""

    @abstractmethod
    def constructor(self) -> LearnerConstructor:
        """The constructor, called once for each trained network. Errors: MissingExtra."""

    @abstractmethod
    def kept(
        self, trained: int, frozen_bytes: int, settings: Any, *, processes: int
    ) -> MemoryFootprint:
        """Memory of each of `processes` processes for `trained` float32 parameters and
        `frozen_bytes` bytes of other weights.

        Errors: ConfigError for settings that the constructor would reject.
        """

    def shard(self, base: Any) -> None:  # noqa: B027 - most kinds keep bases whole
        """Partition the weights of a base among processes, in place: once per base, after loading
        and before a network is built on it."""
