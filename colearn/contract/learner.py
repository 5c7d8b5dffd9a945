"""Learner interface: forward pass, backward pass, optimiser step and saved state of one trained
model or critic; and the optimiser that a learner is built with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from .timeline import Timed

if TYPE_CHECKING:
    from torch import Tensor

    from .rows import Outputs, Row, RowBatch
    from .weight_sync import WeightUpdate


class Objective(Protocol):
    """The loss function of one minibatch. An objective is a frozen, picklable object without side
    effects, because a learner may run in another process."""

    def __call__(self, outputs: Outputs, batch: RowBatch, /) -> tuple[Tensor, dict[str, float]]:
        """Returns a micro-batch's share of the minibatch's loss (see `PolicyLoss`), and metrics to
        sum over micro-batches."""


@dataclass(frozen=True, slots=True)
class Accumulated:
    """The result of `Learner.accumulate`, identical on every rank."""

    metrics: Mapping[str, float]
    """Sums over the micro-batches."""
    values: Mapping[int, tuple[float, ...]]
    """The value head's outputs at the marks of each row that has marks, by the row's index."""


class Minibatch(NamedTuple):
    """The data of one optimiser step of one learner."""

    learner: Learner
    rows: Sequence[Row]
    objective: Objective


class WeightCopy(ABC):
    """Snapshot of a learner's trained weights, stored in the learner's process."""

    steps: int
    """Version of these weights: the number of optimiser steps."""

    @abstractmethod
    def put(self) -> None:
        """Load these weights and their version into the learner; the learner's optimiser does not
        change."""

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

    `accumulate` divides rows into micro-batches by a token budget and runs the forward and backward
    passes. `step` takes one optimiser step with the accumulated gradient. Every process calls these
    methods with the same rows in the same order, and computes its share of the rows. An objective
    returns parts of a sum, so the gradient does not depend on the micro-batch size or the number of
    processes.
    """

    name: str
    size: int
    """Number of trained parameters."""
    steps: int
    """Number of optimiser steps so far, which is the version of the learner's weights."""
    pass_group: Hashable | None = None
    """Learners with equal groups can be trained in joint passes; None: in no joint pass."""

    @abstractmethod
    def evaluate(self, rows: Sequence[Row], *, reference: bool = False) -> list[Outputs]:
        """Returns teacher-forced outputs without gradient, one per row. Every process
        receives all outputs, on the CPU.

        `reference`: evaluate the reference policy, which is the base model without the adapter.
        """

    @abstractmethod
    def accumulate(self, rows: Sequence[Row], objective: Objective) -> Accumulated:
        """Run the forward and backward passes over the rows of a minibatch and add their gradient.

        Errors: FloatingPointError if a loss is not finite; raised in every process, and names the
        loss.
        """

    def accumulate_joint(self, minibatches: Sequence[Minibatch]) -> list[Accumulated]:
        """As `accumulate`, for minibatches of several learners of one `pass_group`, this learner
        among them: the rows of all share micro-batches, and the base's layers run once for each."""
        return [one.learner.accumulate(one.rows, one.objective) for one in minibatches]

    @abstractmethod
    def step(self, done: float) -> dict[str, float]:
        """Clip the gradient, take an optimiser step and zero the gradient; returns the metrics
        grad_norm and learning_rate.

        `done`, the used fraction of the training budget, determines the scheduled learning rate.
        Errors: FloatingPointError for a non-finite gradient norm, raised before the weights change.
        """

    @abstractmethod
    def observe(self, returns: Sequence[float], centre: float) -> None:
        """Update the value head's scale from `returns`, which are the same on all ranks, and from
        `centre`, the centre of these returns."""

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
        """Returns the current weights for generators; every process must call this method."""

    @abstractmethod
    def weights(self) -> dict[str, Any]:
        """Trained weights for generators and export, by their names in transformers or peft."""

    def fetch(self) -> None:
        """Load the weights into this process's copy of the network, if the network itself is in
        another process."""


class Optimizer(ABC):
    """Takes the optimiser steps of one network, and holds the optimiser's state.

    For each minibatch, the learner enters `passes`, calls `forward` and `backward` for each
    micro-batch, leaves `passes` and calls `step`. The learner divides rows among processes, sums
    gradients over processes and counts steps.
    """

    collective: ClassVar[bool] = False
    """Whether processes communicate in every forward or backward pass, and sum gradients there. A
    process without a micro-batch in a round then runs another process's micro-batch with weight 0,
    and all micro-batches of a round are of the same kind."""
    follows_gradient: ClassVar[bool] = True
    """Whether steps follow the loss's gradient, so that a loss without gradient is an error."""
    forward: Callable[..., Outputs]
    """`forward(batch, entropy=...)` returns a batch's outputs: the network, or a wrapper of it."""
    passes: Callable[[], AbstractContextManager[None]] = nullcontext
    """Returns the context of a minibatch's forward and backward passes."""

    def backward(self, loss: Tensor) -> None:
        """Run the backward pass of a micro-batch's loss, which has a gradient."""
        loss.backward()

    @abstractmethod
    def step(self, number: int, done: float) -> dict[str, float]:
        """Take optimiser step `number`, counted from 0, with the accumulated gradient, and zero the
        gradient; returns metrics. `done` and errors: as for `Learner.step`."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """The whole state, in the form of `torch.optim.Optimizer.state_dict`; every process must
        call this method."""

    @abstractmethod
    def restore(self, state: dict[str, Any]) -> None:
        """The inverse of `state`, called after the network's weights have been loaded."""


@dataclass(frozen=True, slots=True)
class MemoryFootprint:
    """Memory, in bytes, that a process needs for a single network on the network's device."""

    weights: int
    """Bytes of weights between updates."""
    gradients: int
    """Bytes of gradients, held from the network's forward pass to its optimiser step."""
    adam: int
    master: int = 0
    """Number of bytes of a second copy of the trained weights, such as ZeRO's copy of the rank's
    partition."""
    step: int = 0
    """Bytes of temporary memory during an optimiser step."""
    updating: int | None = None
    """Number of bytes of weights while this network is updated; None: equal to `weights`."""
    gradients_stay: bool = False
    """Whether the gradients' memory is never freed."""
    offloaded: int = 0
    """Number of additional bytes in CPU memory."""


class LearnerKind(ABC):
    """Settings of a kind of learner, as a frozen dataclass. The dataclass builds the optimisers of
    a run's learners and estimates the learners' memory for the dry run. Importing the dataclass
    does not import torch."""

    joint_passes: ClassVar[bool] = False
    """Whether a loss of several networks may run backward with the optimiser of one of them, so
    that adapters can be trained in joint passes."""

    @abstractmethod
    def build(self, name: str, network: Any, settings: Any) -> Optimizer:
        """Returns the optimiser of `network`, whose learner is called `name`, with the model's or
        critic's `settings`.

        Errors: MissingExtra; ConfigError for settings that this kind does not support.
        """

    @abstractmethod
    def kept(
        self, trained: int, frozen_bytes: int, settings: Any, *, processes: int
    ) -> MemoryFootprint:
        """Estimates the memory that each of `processes` processes needs for `trained` float32
        parameters and `frozen_bytes` bytes of other weights.

        Errors: ConfigError for settings that `build` would reject.
        """
