"""The DeepSpeed learner: one ZeRO engine for each trained network, stages 0 and 2."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from colearn.config import OptimizerSettings
from colearn.contract import Objective
from colearn.contract.rows import Outputs, Row, RowBatch
from colearn.errors import ConfigError
from colearn.models.network import Network

from . import files
from .batch import make_batch, micro_batches
from .deepspeed_config import engine_config
from .deepspeed_engine import gathered, start_engine
from .deepspeed_state import read_state, write_state
from .finite import gradient_error, loss_error
from .network_learner import NetworkLearner
from .schedule import schedule

Micro = tuple[int, list[tuple[int, int, Row]]]
"""A micro-batch with its number in the minibatch."""


class DeepSpeedLearner(NetworkLearner):
    """One network, one engine, one AdamW in float32: the same steps as `LocalLearner`.

    Every process is given the same rows. They go through in rounds of one micro-batch for each
    process, since ZeRO-2 adds up gradients over processes while they arrive.
    """

    def __init__(
        self,
        name: str,
        network: Network,
        settings: OptimizerSettings,
        *,
        config_source: str,
        token_budget: int,
        pad: int = 0,
        entropy: bool = False,
    ) -> None:
        if settings.head_learning_rate is not None:
            raise ConfigError(
                f"head_learning_rate: {name} runs under DeepSpeed, whose engine has one rate; "
                "leave it out, or set run.learner to local"
            )
        config = engine_config(config_source, settings)
        super().__init__(
            name, network, settings, token_budget=token_budget, pad=pad, entropy=entropy
        )
        # peft freezes every adapter but the one in use, and a frozen weight gets no hook.
        with network.base.using(network.adapter):
            self.engine = start_engine(
                name, _Pass(network, self.parameters.values()), network.base.device, config
            )
        self.processes: int = self.engine.world_size
        self.rank: int = self.engine.global_rank
        self._reached = False
        self._norm = math.nan
        if not self.engine.zero_optimization():
            self.engine.optimizer.register_step_pre_hook(self._clip)

    def accumulate(self, groups: Sequence[Sequence[Row]], objective: Objective) -> dict[str, float]:
        """Errors: FloatingPointError, in every process, naming the loss that is not finite."""
        totals: dict[str, float] = {}
        numbered = enumerate(micro_batches(groups, self.token_budget))
        for kind, turn in rounds(numbered, self.processes):
            # A process without a micro-batch of its own goes through another's, with weight 0:
            # its gradients must arrive too, and in the same order.
            spare = self.rank >= len(turn)
            _, micro = turn[0 if spare else self.rank]
            batch = make_batch([row for _, _, row in micro], self.pad, self.device)
            outputs = Outputs(**dict(zip(_FIELDS, self.engine(batch, self.entropy), strict=True)))
            loss = _nothing(outputs)
            metrics: dict[str, float] = {}
            if not spare:
                part, metrics = objective(outputs, batch)
                loss = loss + part
            self._check(turn, loss)
            # Rows with neither actions nor marks have nothing to train.
            if any(kind):
                self.engine.backward(loss)
                self._reached = True
            for key, value in metrics.items():
                totals[key] = totals.get(key, 0.0) + value
        merged: dict[str, float] = {}
        for part in gathered(totals):
            for key, value in part.items():
                merged[key] = merged.get(key, 0.0) + value
        return merged

    def share(self, mine: dict[int, Any]) -> dict[int, Any]:
        return {key: value for part in gathered(mine) for key, value in part.items()}

    def step(self, done: float) -> dict[str, float]:
        rate = self.settings.learning_rate * schedule(self.settings, self.steps, done)
        self._norm = 0.0
        # Without any gradient a step is none: zeros would still decay the weights and move them
        # by their momentum.
        if self._reached:
            for group in self.engine.optimizer.param_groups:
                group["lr"] = rate
            with self.network.base.using(self.network.adapter):
                self.engine.step()
            if self.engine.zero_optimization():
                # ZeRO has left the weights alone where this is not finite.
                self._norm = float(self.engine.get_global_grad_norm())
                self._check_norm()
        self._reached = False
        self.steps += 1
        return {"grad_norm": self._norm, "learning_rate": rate}

    def save(self, folder: Path) -> None:
        """The first process writes; all of them must call."""
        state = read_state(self.engine, list(self.parameters.values()))
        if self.rank == 0:
            files.save_learner(folder, self.network.state(), state, self.steps)
        gathered(None)

    def load(self, folder: Path) -> None:
        state, self.steps = files.load_learner(folder, self.network.state())
        write_state(self.engine, list(self.parameters.values()), state)

    def _check(self, turn: Sequence[Micro], loss: Tensor) -> None:
        """All processes stop at the same loss; one alone would leave the others waiting."""
        values = torch.zeros(self.processes, device=self.device)
        values[self.rank] = loss.detach()
        if self.processes > 1:
            torch.distributed.all_reduce(values)
        for (number, micro), value in zip(turn, values.tolist(), strict=False):
            if not math.isfinite(value):
                raise FloatingPointError(
                    loss_error(self.name, self.steps + 1, number + 1, len(micro), value)
                )

    def _clip(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        """Stage 0, between the sum over processes and AdamW: DeepSpeed keeps no norm there."""
        weights = [weight for group in optimizer.param_groups for weight in group["params"]]
        self._norm = nn.utils.clip_grad_norm_(weights, self.settings.max_grad_norm).item()
        self._check_norm()

    def _check_norm(self) -> None:
        if not math.isfinite(self._norm):
            raise FloatingPointError(gradient_error(self.name, self.steps + 1, self._norm))


def _nothing(outputs: Outputs) -> Tensor:
    """0, with a gradient of 0 for all outputs, so that no objective leaves some weights out."""
    logprobs, values = outputs.logprobs, outputs.values
    return 0.0 * (logprobs.nan_to_num(0, 0, 0).sum() + values.nan_to_num(0, 0, 0).sum())


_FIELDS = ("logprobs", "entropy", "values")


class _Pass(nn.Module):
    """The trained weights alone, with the network's forward pass.

    The network is no submodule: a frozen base that several networks share stays out of
    DeepSpeed's hands, which would send it to every process once for each engine.
    """

    def __init__(self, network: Network, weights: Iterable[nn.Parameter]) -> None:
        super().__init__()
        self.weights = nn.ParameterList(weights)
        self._network = (network,)

    def forward(self, batch: RowBatch, entropy: bool) -> tuple[Tensor | None, ...]:
        """A tuple, because DeepSpeed looks for the tensors to watch in tuples, not dataclasses."""
        outputs = self._network[0](batch, entropy=entropy)
        return tuple(getattr(outputs, field) for field in _FIELDS)


def rounds(
    micros: Iterable[Micro], processes: int
) -> Iterator[tuple[tuple[bool, bool], list[Micro]]]:
    """Up to `processes` micro-batches at a time, all of one kind: (has actions, has marks).

    A kind reaches the same weights in the same order in every process. ZeRO-2 fills its buckets
    in the order in which gradients arrive, so another order would add up unlike weights.
    """
    kinds: dict[tuple[bool, bool], list[Micro]] = {}
    for number, micro in micros:
        rows = [row for _, _, row in micro]
        kind = (any(row.action_tokens for row in rows), any(row.marks for row in rows))
        kinds.setdefault(kind, []).append((number, micro))
    for kind, found in kinds.items():
        for start in range(0, len(found), processes):
            yield kind, found[start : start + processes]
