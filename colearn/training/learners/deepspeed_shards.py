"""Shards the weights of a ZeRO-3 engine during an update, and gathers them in every process at all
other times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

_GRADIENTS = "_DeepSpeedZeroOptimizer_Stage3__param_id_to_grad_partition"


class Shards:
    """Shards an engine's weights over processes before the engine's passes, and gathers the weights
    afterwards.

    DeepSpeed's hooks gather a layer's weights for the layer's pass. The hooks are active only while
    the weights are sharded. Generation, evaluation and checkpoints run the same modules on whole
    weights, without collectives. With `hooked` False, the weights stay whole, but the optimiser
    state is still sharded. Adapters need `hooked` False, since an adapter's modules belong to a
    base that several engines share.
    """

    def __init__(self, engine: Any, parameters: Sequence[nn.Parameter], *, hooked: bool) -> None:
        self._parameters: list[Any] = list(parameters)  # with the methods that stage 3 adds
        self._optimizer = engine.optimizer
        self._offload = engine.optimizer.parameter_offload
        self._hooked = hooked
        self.gather()

    def divide(self) -> None:
        """Keep only this process's shard of every weight. Every process must call this method."""
        self._parameters[0].partition(param_list=self._parameters, has_been_updated=True)
        self._copy_to_masters()
        if self._hooked:
            self._offload._register_deepspeed_module(self._offload.module)
        else:
            self.gather()

    def gather(self) -> None:
        """Make every weight whole. Every process must call this method."""
        from deepspeed.runtime.zero.partition_parameters import ZeroParamStatus

        for hook in (*self._offload.forward_hooks, *self._offload.backward_hooks):
            hook.remove()
        self._offload.forward_hooks, self._offload.backward_hooks = [], []
        divided: list[Any] = []
        for parameter in self._parameters:
            parameter.ds_active_sub_modules.clear()
            if parameter.ds_status is not ZeroParamStatus.AVAILABLE:
                divided.append(parameter)
        if divided:
            divided[0].all_gather(param_list=divided)

    def clear_gradients(self) -> None:
        """Zero this process's gradients after a step. DeepSpeed overwrites a gradient only if the
        first pass of the next step uses the gradient's weight."""
        for part in getattr(self._optimizer, _GRADIENTS).values():
            part.zero_()

    def write(self, parameter: nn.Parameter, value: Tensor, key: str | None) -> None:
        """Copy this process's shard of a whole value to a master weight if `key` is None, else to
        the master weight's optimiser moment `key`."""
        part, _ = self._optimizer._get_fp32_opt_state_partition(
            parameter, release_swap_buffers=False, optim_state_key=key
        )
        size = part.numel()
        padded = value.new_zeros(size * torch.distributed.get_world_size())
        padded[: value.numel()] = value.flatten()
        part.data.copy_(padded.narrow(0, size * torch.distributed.get_rank(), size))

    def _copy_to_masters(self) -> None:
        for parameter in self._parameters:
            part, _ = self._optimizer._get_fp32_opt_state_partition(
                parameter, release_swap_buffers=False, optim_state_key=None
            )
            part.data.copy_(parameter.ds_tensor.data)
