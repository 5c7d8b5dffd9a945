"""The learner: owns one trained model or critic; forward, backward, step, state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from torch import Tensor

    from .rows import Outputs, Row, RowBatch
    from .weights import WeightUpdate


class Objective(Protocol):
    """What a learner minimises over one minibatch: a value without side effects, frozen and
    picklable, since a learner may live in another process."""

    def __call__(self, outputs: Outputs, batch: RowBatch, /) -> tuple[Tensor, dict[str, float]]:
        """A micro-batch's share of the minibatch's loss (see `PolicyLoss`), and metrics that add
        up."""


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """Rows as one learner has cut them into micro-batches, for every epoch on the same rows."""

    groups: tuple[tuple[Row, ...], ...]


@dataclass(frozen=True, slots=True)
class Accumulated:
    """What `Learner.accumulate` has found, the same in every process."""

    metrics: Mapping[str, float]
    """Sums over the micro-batches."""
    values: Mapping[tuple[int, int], tuple[float, ...]]
    """What the value head has given at the marks of each row that has any, by the number of its
    group and its place there."""


class Learner(ABC):
    """One optimiser over one trained model (an actor, a critic, or an actor with a value head).

    `prepare` cuts rows into micro-batches by a token budget, `accumulate` runs forward and backward
    over them, and `step` makes one optimiser step from what has been accumulated. Every process
    calls with the same rows in the same order and takes its share; an objective returns parts of a
    sum, so the gradient is that of the whole minibatch whatever the micro-batch size and the number
    of processes.
    """

    name: str
    steps: int
    """Optimiser steps so far: the version of its weights."""

    @abstractmethod
    def evaluate(
        self, groups: Sequence[Sequence[Row]], *, reference: bool = False
    ) -> list[list[Outputs]]:
        """Teacher-forced outputs without gradient, one per row, on the CPU, on every process.

        `reference`: of the base without its adapter, which is the reference policy.
        """

    @abstractmethod
    def prepare(self, groups: Sequence[Sequence[Row]]) -> Prepared:
        """Cut rows into micro-batches; rows of one group share one."""

    @abstractmethod
    def accumulate(self, prepared: Prepared, objective: Objective) -> Accumulated:
        """Forward and backward over what this learner has prepared.

        Errors: FloatingPointError, in every process, naming the loss that is not finite.
        """

    @abstractmethod
    def step(self, done: float) -> dict[str, float]:
        """Clip, step, zero the gradient; gives grad_norm and learning_rate.

        `done` is the share of the training budget already used; the schedule goes by it.
        Errors: a non-finite gradient norm raises `FloatingPointError` before the weights move.
        """

    @abstractmethod
    def observe(self, returns: Sequence[float], centre: float) -> None:
        """Move the value head's scale to returns that all processes see alike, around their
        `centre`."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Weights, optimiser and schedule, exactly, as safetensors and JSON."""

    @abstractmethod
    def load(self, folder: Path) -> None:
        """The inverse of `save`; a truncated or foreign file is a `CheckpointError`."""

    @abstractmethod
    def publish(self) -> WeightUpdate:
        """The weights as they are now, for generators; every process calls it."""

    @abstractmethod
    def weights(self) -> dict[str, Any]:
        """Trained weights by their transformers (or peft) name, for generators and export."""


@dataclass(frozen=True, slots=True)
class Kept:
    """Bytes that one process holds for one network between updates."""

    weights: int
    gradients: int
    adam: int
    master: int = 0
    """A second copy of trained weights, such as ZeRO's of the part that a process steps."""


class LearnerKind(ABC):
    """Settings of a kind of learner, as a frozen dataclass: it builds the learners of a run and
    tells the dry run what they keep in memory. Loading it loads no torch."""

    @abstractmethod
    def build(
        self, name: str, network: Any, settings: Any, *, token_budget: int, entropy: bool = False
    ) -> Learner:
        """A learner of `network`, which it trains by the model's or the critic's `settings`;
        micro-batches hold up to `token_budget` tokens, and `entropy` is given to the loss.

        Errors: ConfigError for settings that this kind does not support; MissingExtra.
        """

    @abstractmethod
    def kept(self, trained: int, frozen_bytes: int, settings: Any, *, processes: int) -> Kept:
        """What each of `processes` keeps of `trained` float32 parameters and `frozen_bytes` of
        others.

        Errors: ConfigError for settings that `build` would refuse.
        """

    def shard(self, base: Any) -> None:  # noqa: B027 - most kinds keep bases whole
        """Divide the weights of a base among processes, in place: once for every base of a run,
        when it is loaded and before a network stands on it."""
