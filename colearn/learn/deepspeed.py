"""The DeepSpeed learner: one ZeRO engine for each trained network, stages 0 and 2."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from colearn.config import OptimizerSettings
from colearn.contract.rows import Outputs, RowBatch
from colearn.errors import ConfigError
from colearn.models.network import Network

from . import files
from .deepspeed_config import engine_config
from .deepspeed_engine import gathered, start_engine
from .deepspeed_state import read_state, write_state
from .network_learner import NetworkLearner
from .schedule import schedule


class DeepSpeedLearner(NetworkLearner):
    """One network, one engine, one AdamW in float32: the same steps as `LocalLearner`, in lockstep,
    since ZeRO-2 adds up gradients over processes while they arrive."""

    lockstep = True

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
        self.processes = self.engine.world_size
        self.rank = self.engine.global_rank
        self._reached = False
        self._norm = math.nan
        if not self.engine.zero_optimization():
            self.engine.optimizer.register_step_pre_hook(self._clip)

    def _forward(self, batch: RowBatch) -> Outputs:
        return Outputs(**dict(zip(_FIELDS, self.engine(batch, self.entropy), strict=True)))

    def _backward(self, loss: Tensor) -> None:
        self.engine.backward(loss)
        self._reached = True

    def _gathered(self, value: Any) -> list[Any]:
        return gathered(value)

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
            self.network.base.revision += 1
            if self.engine.zero_optimization():
                # ZeRO has left the weights alone where this is not finite.
                self._norm = float(self.engine.get_global_grad_norm())
                self._check_norm(self._norm)
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
        self.network.base.revision += 1

    def _clip(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        """Stage 0, between the sum over processes and AdamW: DeepSpeed keeps no norm there."""
        weights = [weight for group in optimizer.param_groups for weight in group["params"]]
        self._norm = nn.utils.clip_grad_norm_(weights, self.settings.max_grad_norm).item()
        self._check_norm(self._norm)


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
