"""DeepSpeed steps: one ZeRO engine (stage 0, 1, 2 or 3) for each trained network."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from colearn.config import OptimizerSettings
from colearn.contract import Optimizer
from colearn.contract.rows import Outputs, RowBatch
from colearn.errors import ConfigError
from colearn.models.network import Network

from .deepspeed_config import engine_config
from .deepspeed_engine import alone, has_cpu_adam, start_engine
from .deepspeed_shards import Shards
from .deepspeed_state import read_state, write_shards, write_state
from .torch_optimizer import check_norm, rate_factor


class DeepSpeedOptimizer(Optimizer):
    """Runs the passes and steps of one network in one DeepSpeed engine with one AdamW in float32.
    Steps equal the steps of `TorchOptimizer`.

    All processes enter every pass because ZeRO-2 reduces gradients during the backward pass.
    """

    collective = True

    def __init__(
        self, name: str, network: Network, settings: OptimizerSettings, config_source: str
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
        self.name, self.network, self.settings = name, network, settings
        self.parameters: list[nn.Parameter] = list(network.trained().values())
        # peft freezes all adapters except the active one, and a frozen weight gets no hook.
        with network.base.using(network.adapter):
            layered = sharded and network.adapter is None
            module = _Pass(network, None if layered else self.parameters)
            self.engine = start_engine(name, module, network.base.device, config)
        self._shards: Shards | None = None
        if sharded:
            with alone():
                self._shards = Shards(self.engine, self.parameters, hooked=layered)
        self._reached = False
        self._number, self._norm = 0, math.nan
        if not self.engine.zero_optimization():
            self.engine.optimizer.register_step_pre_hook(self._clip)

    @contextmanager
    def passes(self) -> Iterator[None]:
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

    def forward(self, batch: RowBatch, *, entropy: bool = False) -> Outputs:
        return Outputs(**dict(zip(_FIELDS, self.engine(batch, entropy), strict=True)))

    def backward(self, loss: Tensor) -> None:
        # stage 3 divides gradients by the number of processes
        self.engine.backward(loss if self._shards is None else loss * self.engine.world_size)
        self._reached = True

    def step(self, number: int, done: float) -> dict[str, float]:
        rate = self.settings.learning_rate * rate_factor(self.settings, number, done)
        self._number, self._norm = number, 0.0
        # No step without gradients: zero gradients would still apply weight decay and momentum.
        if self._reached:
            for group in self.engine.optimizer.param_groups:
                group["lr"] = rate
            with self.network.base.using(self.network.adapter), self.passes():
                self.engine.step()
                if self._shards is not None:
                    self._shards.clear_gradients()
            if self.engine.zero_optimization():
                # ZeRO skips the step if the norm is not finite.
                self._norm = float(self.engine.get_global_grad_norm())
                check_norm(self.name, number, self._norm)
        self._reached = False
        return {"grad_norm": self._norm, "learning_rate": rate}

    def state(self) -> dict[str, Any]:
        with self.network.base.using(self.network.adapter):  # stage 3 has no state of others
            return read_state(self.engine, self.parameters, keep=self.engine.global_rank == 0)

    def restore(self, state: dict[str, Any]) -> None:
        if self._shards is None:
            write_state(self.engine, self.parameters, state)
        else:
            with self.network.base.using(self.network.adapter), self.passes():
                write_shards(self.engine, self._shards, self.parameters, state)

    def _clip(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        """Clip the gradient at stage 0, after processes have summed their gradients, since
        DeepSpeed reports no norm at stage 0."""
        weights = [weight for group in optimizer.param_groups for weight in group["params"]]
        self._norm = nn.utils.clip_grad_norm_(weights, self.settings.max_grad_norm).item()
        check_norm(self.name, self._number, self._norm)


_FIELDS = tuple(field.name for field in dataclasses.fields(Outputs))


class _Pass(nn.Module):
    """Module that an engine runs: a network's forward pass.

    With `weights`, only these are the module's parameters, and the network is not a submodule,
    since DeepSpeed would broadcast a shared frozen base once per engine. Without `weights`, the
    network is a submodule, so that DeepSpeed can gather the weights of each submodule for its pass.
    """

    def __init__(self, network: Network, weights: list[nn.Parameter] | None) -> None:
        super().__init__()
        if weights is None:
            self.network = network
        else:
            self.weights = nn.ParameterList(weights)
        self._network = (network,)

    def forward(self, batch: RowBatch, entropy: bool) -> tuple[Tensor | None, ...]:
        """Return the outputs as a tuple, since DeepSpeed looks for tensors in tuples, not in
        dataclasses."""
        network = self._network[0]
        outputs = network.forward(
            batch, entropy=entropy
        )  # hooks of DeepSpeed cannot read `Outputs`
        return tuple(getattr(outputs, field) for field in _FIELDS)
