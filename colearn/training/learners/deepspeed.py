"""DeepSpeed learner: one ZeRO engine (stage 0, 1, 2 or 3) for each trained network."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from colearn.config import OptimizerSettings
from colearn.contract import Accumulated, Objective
from colearn.contract.rows import Outputs, Row, RowBatch
from colearn.contract.timeline import updates
from colearn.errors import ConfigError
from colearn.models.network import Network

from .deepspeed_config import engine_config
from .deepspeed_engine import alone, gathered, has_cpu_adam, start_engine
from .deepspeed_shards import Shards
from .deepspeed_state import read_state, write_shards, write_state
from .network_learner import NetworkLearner
from .rate_schedule import rate_factor


class DeepSpeedLearner(NetworkLearner):
    """Trains one network with one DeepSpeed engine and one AdamW in float32. Optimiser steps equal
    the steps of `LocalLearner`.

    Processes run in lockstep because ZeRO-2 reduces gradients during the backward pass.
    """

    lockstep = True

    def __init__(
        self,
        name: str,
        network: Network,
        settings: OptimizerSettings,
        *,
        config_source: str,
        token_budget: int,
        entropy: bool = False,
    ) -> None:
        if settings.head_learning_rate is not None:
            raise ConfigError(
                f"head_learning_rate: {name} runs under DeepSpeed, whose engine has one rate; "
                "leave it out, or set run.learner to local"
            )
        config = engine_config(config_source, settings, adapter=network.adapter is not None)
        zero = config["zero_optimization"]
        sharded = zero["stage"] == 3
        if "offload_optimizer" in zero and has_cpu_adam():
            config["optimizer"]["params"]["torch_adam"] = False
        super().__init__(name, network, token_budget=token_budget, entropy=entropy)
        self.settings = settings
        # peft freezes all adapters except the active one, and a frozen weight gets no hook.
        with network.base.using(network.adapter):
            layered = sharded and network.adapter is None
            module = _Layers(network) if layered else _Pass(network, self.parameters.values())
            self.engine = start_engine(name, module, network.base.device, config)
        self.processes = self.engine.world_size
        self.rank = self.engine.global_rank
        self._shards: Shards | None = None
        if sharded:
            with alone():
                self._shards = Shards(self.engine, [*self.parameters.values()], hooked=layered)
        self._reached = False
        self._norm = math.nan
        if not self.engine.zero_optimization():
            self.engine.optimizer.register_step_pre_hook(self._clip)

    def accumulate(self, rows: Sequence[Row], objective: Objective) -> Accumulated:
        with self._divided():
            return super().accumulate(rows, objective)

    @contextmanager
    def _divided(self) -> Iterator[None]:
        """Context in which stage 3 shards the weights; outside this context, every process has the
        whole weights."""
        if self._shards is None:
            yield
            return
        with alone():
            self._shards.divide()
            try:
                yield
            finally:
                self._shards.gather()

    def _forward(self, batch: RowBatch) -> Outputs:
        return Outputs(**dict(zip(_FIELDS, self.engine(batch, self.entropy), strict=True)))

    def _backward(self, loss: Tensor) -> None:
        # stage 3 divides gradients by the number of processes
        self.engine.backward(loss if self._shards is None else loss * self.processes)
        self._reached = True

    def _gathered(self, value: Any) -> list[Any]:
        return gathered(value)

    @updates
    def step(self, done: float) -> dict[str, float]:
        rate = self.settings.learning_rate * rate_factor(self.settings, self.steps, done)
        self._norm = 0.0
        # No step without gradients: zero gradients would still apply weight decay and momentum.
        if self._reached:
            for group in self.engine.optimizer.param_groups:
                group["lr"] = rate
            with self.network.base.using(self.network.adapter), self._divided():
                self.engine.step()
                if self._shards is not None:
                    self._shards.clear_gradients()
            self.network.base.revision += 1
            if self.engine.zero_optimization():
                # ZeRO skips the step if the norm is not finite.
                self._norm = float(self.engine.get_global_grad_norm())
                self._check_norm(self._norm)
        self._reached = False
        self.steps += 1
        return {"grad_norm": self._norm, "learning_rate": rate}

    def optimizer_state(self) -> dict[str, Any]:
        with self.network.base.using(self.network.adapter):  # stage 3 has no state of others
            parameters = list(self.parameters.values())
            return read_state(self.engine, parameters, keep=self.rank == 0)

    def restore_optimizer(self, state: dict[str, Any]) -> None:
        parameters = list(self.parameters.values())
        if self._shards is None:
            write_state(self.engine, parameters, state)
        else:
            with self.network.base.using(self.network.adapter), self._divided():
                write_shards(self.engine, self._shards, parameters, state)

    def _clip(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        """Clip the gradient at stage 0, after processes have summed their gradients, since
        DeepSpeed reports no norm at stage 0."""
        weights = [weight for group in optimizer.param_groups for weight in group["params"]]
        self._norm = nn.utils.clip_grad_norm_(weights, self.settings.max_grad_norm).item()
        self._check_norm(self._norm)


_FIELDS = ("logprobs", "entropy", "values")


class _Pass(nn.Module):
    """Module with the trained weights as parameters and the network's forward pass.

    The network is not a submodule, since DeepSpeed would broadcast a shared frozen base once per
    engine.
    """

    def __init__(self, network: Network, weights: Iterable[nn.Parameter]) -> None:
        super().__init__()
        self.weights = nn.ParameterList(weights)
        self._network = (network,)

    def forward(self, batch: RowBatch, entropy: bool) -> tuple[Tensor | None, ...]:
        """Return the outputs as a tuple, since DeepSpeed looks for tensors in tuples, not in
        dataclasses."""
        return _outputs(self._network[0], batch, entropy)


class _Layers(nn.Module):
    """Module with the network as a submodule. At stage 3, DeepSpeed gathers the weights of each
    submodule for the pass of that submodule."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network

    def forward(self, batch: RowBatch, entropy: bool) -> tuple[Tensor | None, ...]:
        return _outputs(self.network, batch, entropy)


def _outputs(network: Network, batch: RowBatch, entropy: bool) -> tuple[Tensor | None, ...]:
    outputs = network.forward(batch, entropy=entropy)  # hooks of DeepSpeed cannot read `Outputs`
    return tuple(getattr(outputs, field) for field in _FIELDS)
