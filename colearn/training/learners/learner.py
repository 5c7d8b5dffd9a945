"""The learner of one network: micro-batches, rounds over several processes, and checkpoints."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import torch
from accelerate import PartialState
from torch import Tensor

from colearn.config import CriticSettings, ResolvedRun
from colearn.contract import (
    Accumulated,
    Learner,
    Minibatch,
    NetworkKey,
    Objective,
    Optimizer,
    WeightUpdate,
)
from colearn.contract.rows import Outputs, Row, RowBatch
from colearn.contract.timeline import updates
from colearn.models.network import Network, ValueHead, joint_outputs
from colearn.models.weight_update import weight_update

from . import checkpoint_files
from .batch import (
    Micro,
    Round,
    contents,
    evaluate,
    joint_micro_batches,
    make_batch,
    rounds,
    split_micro,
)
from .copies import HeldWeights
from .minibatch_sums import MinibatchSums, check_gradient, loss_error


def build_learner(run: ResolvedRun, key: NetworkKey, network: Network) -> NetworkLearner:
    """Return the learner of a network of a run, with the optimiser of the run's kind of learner, or
    with ridge regression for a critic whose head is solved in closed form. Errors: as for
    `LearnerKind.build`."""
    name, settings = str(key), run.learners[key]
    if isinstance(settings, CriticSettings) and settings.head == "ridge":
        from .ridge import RidgeOptimizer

        optimizer: Optimizer = RidgeOptimizer(network, settings)
    else:
        optimizer = run.learner.build(name, network, settings)
    return NetworkLearner(
        name,
        network,
        optimizer,
        token_budget=run.token_budget,
        entropy=key.kind == "actor" and run.parts.loss.needs_entropy,
        joint=run.joins(key),
    )


class NetworkLearner(Learner):
    """A network of this process, its optimiser, and the number of steps.

    Every process receives the same rows. A round assigns one micro-batch to each process; the
    losses of all processes are parts of one sum. Gradients are summed over processes, never
    averaged, so results do not depend on the number of processes.
    """

    def __init__(
        self,
        name: str,
        network: Network,
        optimizer: Optimizer,
        *,
        token_budget: int,
        entropy: bool = False,
        joint: bool = False,
    ) -> None:
        self.name = name
        self.network = network
        self.optimizer = optimizer
        self.token_budget = token_budget
        self.entropy = entropy
        self.parameters = network.trained()
        self.size = sum(parameter.numel() for parameter in self.parameters.values())
        self.steps = 0
        if joint and not network.base.head_adapted:
            self.pass_group = id(network.base), network.checkpointing
        if not optimizer.collective:
            # Without cpu=True accelerate treats CPU processes as single ones.
            PartialState(cpu=self.device.type == "cpu")
        self.processes, self.rank = 1, 0
        if torch.distributed.is_initialized():
            self.processes = torch.distributed.get_world_size()
            self.rank = torch.distributed.get_rank()

    @property
    def device(self) -> torch.device:
        return self.network.base.device

    @updates
    def evaluate(self, rows: Sequence[Row], *, reference: bool = False) -> list[Outputs]:
        return evaluate(self.network, rows, token_budget=self.token_budget, reference=reference)

    @updates
    def accumulate(self, rows: Sequence[Row], objective: Objective) -> Accumulated:
        """As in the base class. An error leaves no gradient."""
        return self._accumulated({self: MinibatchSums(rows, objective)})[0]

    def accumulate_joint(self, minibatches: Sequence[Minibatch]) -> list[Accumulated]:
        """As in the base class. An error leaves no gradient."""
        sums: dict[NetworkLearner, MinibatchSums] = {}
        with ExitStack() as stack:
            for learner, rows, objective in minibatches:
                assert isinstance(learner, NetworkLearner), "learners of this process"
                stack.enter_context(learner.busy("update"))
                sums[learner] = MinibatchSums(rows, objective)
            return self._accumulated(sums)

    @updates
    def step(self, done: float) -> dict[str, float]:
        if self.processes > 1 and not self.optimizer.collective:
            self._share_gradients()
        metrics = self.optimizer.step(self.steps, done)
        self.steps += 1
        self.network.base.revision += 1
        return metrics

    def observe(self, returns: Sequence[float], centre: float) -> None:
        """Update the value head's scale. Errors: ValueError if the network has no value head."""
        self._head.observe(returns, centre)

    def shift(self, by: float) -> None:
        """Add a constant to all values. Errors: ValueError if the network has no value head."""
        self._head.shift(by)

    def save(self, folder: Path) -> None:
        """Save a checkpoint. All processes must call this method, but only the first process writes
        the checkpoint."""
        state = self.optimizer.state()
        if self.rank == 0:
            checkpoint_files.save_learner(folder, self.network.state(), state, self.steps)
        self._gathered(None)

    def load(self, folder: Path) -> None:
        state, self.steps = checkpoint_files.load_learner(folder, self.network.state())
        self.optimizer.restore(state)
        self.network.base.revision += 1

    def copy(self) -> HeldWeights:
        return HeldWeights(self)

    def publish(self) -> WeightUpdate:
        return weight_update(self.network, self.steps)

    def weights(self) -> dict[str, Any]:
        return {name: parameter.detach() for name, parameter in self.parameters.items()}

    @property
    def _head(self) -> ValueHead:
        if self.network.head is None:
            raise ValueError(f"{self.name} has no value head")
        return self.network.head

    def _accumulated(self, sums: Mapping[NetworkLearner, MinibatchSums]) -> list[Accumulated]:
        """Run the passes of minibatches of one or several learners; an error leaves no gradient."""
        try:
            with self.optimizer.passes():
                self._pass(sums)
                return [self._merged(of_learner) for of_learner in sums.values()]
        except BaseException:
            for learner in sums:
                for parameter in learner.parameters.values():
                    parameter.grad = None
            raise

    def _pass(self, sums: Mapping[NetworkLearner, MinibatchSums]) -> None:
        collective = self.optimizer.collective
        rows = [of_learner.rows for of_learner in sums.values()]
        numbered = enumerate(joint_micro_batches(rows, self.token_budget))
        for turn in rounds(numbered, self.processes, alike=collective):
            spare = self.rank >= len(turn)
            if spare and not collective:
                continue
            number, micro = turn[0 if spare else self.rank]
            parts = {
                one: part for one, part in zip(sums, split_micro(micro, rows), strict=True) if part
            }
            batches = [make_batch([row for _, row in part], self.device) for part in parts.values()]
            outputs = _outputs(list(parts), batches)
            losses = [_nothing(outputs[0])] if collective else []
            if not spare:
                losses += [
                    learner._loss(number, part, batch, output, sums[learner])
                    for (learner, part), batch, output in zip(
                        parts.items(), batches, outputs, strict=True
                    )
                ]
            loss = reduce(add, losses)
            if collective:
                self._stop_together(turn, loss)
            elif any(sums[learner].failure for learner in parts):
                break
            # rows without actions have no gradient if the objective reads no values
            if any(contents(micro)) if collective else loss.requires_grad:
                self.optimizer.backward(loss)

    def _loss(
        self, number: int, micro: Micro, batch: RowBatch, outputs: Outputs, sums: MinibatchSums
    ) -> Tensor:
        """The loss of this learner's rows in a micro-batch; adds to the sums."""
        loss, metrics = sums.objective(outputs, batch)
        where = self._where(number)
        if self.optimizer.follows_gradient and self.parameters:
            check_gradient(where, micro, outputs, loss)
        sums.add(micro, outputs, metrics)
        if not self.optimizer.collective and not bool(torch.isfinite(loss)):
            sums.failure = number, loss_error(where, micro, loss.item())
        return loss

    def _where(self, number: int) -> str:
        return f"{self.name}: the loss of update {self.steps + 1}, micro-batch {number + 1}"

    def _gathered(self, value: Any) -> list[Any]:
        """Gather the values of all processes, in order of rank."""
        if self.processes == 1:
            return [value]
        values: list[Any] = [None] * self.processes
        torch.distributed.all_gather_object(values, value)
        return values

    def _share_gradients(self) -> None:
        """Sum gradients over processes. If no process has a gradient for a parameter, the gradient
        stays `None`, as in a single process. With a zero gradient instead of `None`, weight decay
        and momentum would still apply."""
        parameters = list(self.parameters.values())
        reached = [float(parameter.grad is not None) for parameter in parameters]
        counts = torch.tensor(reached, device=self.device)
        torch.distributed.all_reduce(counts)
        for parameter, count in zip(parameters, counts.tolist(), strict=True):
            if count:
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
                torch.distributed.all_reduce(parameter.grad)

    def _merged(self, sums: MinibatchSums) -> Accumulated:
        """Merge the results of all processes. If any process failed, all processes raise the first
        failure."""
        parts = self._gathered((sums.totals, sums.values, sums.failure))
        failures = [failed for _, _, failed in parts if failed is not None]
        if failures:
            raise FloatingPointError(min(failures)[1])
        metrics: dict[str, float] = {}
        for part, _, _ in parts:
            for key, value in part.items():
                metrics[key] = metrics.get(key, 0.0) + value
        return Accumulated(
            metrics,
            {number: value for _, row_values, _ in parts for number, value in row_values.items()},
        )

    def _stop_together(self, turn: Round, loss: Tensor) -> None:
        """Stop all processes if any loss of the round is not finite. If only one process stopped,
        the other processes would wait forever."""
        losses = torch.zeros(self.processes, device=self.device)
        losses[self.rank] = loss.detach()
        if self.processes > 1:
            torch.distributed.all_reduce(losses)
        for (number, micro), value in zip(turn, losses.tolist(), strict=False):
            if not math.isfinite(value):
                raise FloatingPointError(loss_error(self._where(number), micro, value))


def _outputs(learners: Sequence[NetworkLearner], batches: Sequence[RowBatch]) -> list[Outputs]:
    """Run the forward pass of a micro-batch with rows of one or several learners."""
    if len(learners) == 1:
        return [learners[0].optimizer.forward(batches[0], entropy=learners[0].entropy)]
    networks = [learner.network for learner in learners]
    return joint_outputs(networks, batches, [learner.entropy for learner in learners])


def _nothing(outputs: Outputs) -> Tensor:
    """Return a zero loss with zero gradients for all outputs, so that every weight receives a
    gradient. It is a sum over no output, so that no output can make it NaN."""
    return outputs.logprobs[:0].sum() + outputs.values[:0].sum()
