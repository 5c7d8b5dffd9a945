"""The learner: owns one trained model or critic; forward, backward, step, state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

    from .rows import Outputs, Row, RowBatch

Objective = Callable[["Outputs", "RowBatch"], "tuple[Tensor, dict[str, float]]"]
"""This micro-batch's share of the minibatch's loss (see `PolicyLoss`), and metrics that add up."""


class Learner(ABC):
    """One optimiser over one trained model (an actor, a critic, or an actor with a value head).

    `accumulate` runs forward and backward over micro-batches cut by a token budget; `step` makes
    one optimiser step from what has been accumulated. Every process calls with the same rows in
    the same order and takes its share; an objective returns parts of a sum, so the gradient is
    that of the whole minibatch whatever the micro-batch size and the number of processes. `local`
    runs on accelerate, `deepspeed` on one ZeRO engine per learner.
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
    def accumulate(self, groups: Sequence[Sequence[Row]], objective: Objective) -> dict[str, float]:
        """Forward and backward; rows of one group share a micro-batch. Sums of the metrics."""

    @abstractmethod
    def share(self, mine: dict[int, Any]) -> dict[int, Any]:
        """The union over processes of what each has collected in `accumulate`."""

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
