"""Starts a DeepSpeed engine, in one process or under torchrun."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch._C._distributed_c10d import HashStore

from colearn.errors import ConfigError, reason_of, required

from .deepspeed_config import FIELD


def start_engine(name: str, module: nn.Module, device: torch.device, config: dict[str, Any]) -> Any:
    """Start an engine over all parameters of `module`.

    Errors: MissingExtra without DeepSpeed; ConfigError if DeepSpeed is too old, uses another device
    than the model, or rejects the config.
    """
    deepspeed = required("deepspeed", "deepspeed")
    from deepspeed.accelerator import get_accelerator
    from deepspeed.runtime.config import DeepSpeedConfig

    accelerator = get_accelerator().current_device_name()
    if torch.device(accelerator) != _indexed(device):
        raise ConfigError(
            f"{name}: DeepSpeed runs on {accelerator}, this model is on {device}; leave the device "
            "of models and critic out, or run with run.device=cpu and DS_ACCELERATOR=cpu"
        )
    with alone():
        try:
            DeepSpeedConfig(config)
        except (ValueError, AssertionError) as error:
            raise ConfigError(
                f"{FIELD}: DeepSpeed rejects it ({reason_of(error)}); fix the JSON"
            ) from None
        engine = deepspeed.initialize(
            model=module, model_parameters=list(module.parameters()), config=config
        )[0]
    managed = getattr(engine, "managed_gradient_accumulation", lambda: True)()
    averages = engine.zero_optimization_stage() != 3 and getattr(engine, "gradient_average", True)
    if managed or averages:
        raise ConfigError(
            f"run.learner: deepspeed {deepspeed.__version__} can neither leave the step to the "
            "learner nor sum gradients; pip install 'deepspeed>=0.19.8'"
        )
    return engine


def has_cpu_adam() -> bool:
    """Whether DeepSpeed's Adam for offloaded state can be built on this machine. The build needs a
    C++ compiler and ninja; without them, torch's Adam is used. DeepSpeed's Adam is faster: it makes
    one pass over memory per step."""
    required("deepspeed", "deepspeed")
    from deepspeed.ops.op_builder import CPUAdamBuilder

    tools = all(shutil.which(tool) for tool in ("c++", "ninja"))
    return tools and bool(CPUAdamBuilder().is_compatible())


def _indexed(device: torch.device) -> torch.device:
    """Return the device with an index, since DeepSpeed requires an index. For `cuda`, this is the
    index of the current device."""
    if device.type == "cpu" or device.index is not None:
        return device
    return torch.device(device.type, torch.accelerator.current_device_index())


@contextmanager
def alone() -> Iterator[None]:
    """Create a process group of one process if no launcher has started this process. Without a
    process group, DeepSpeed would try MPI."""
    if "LOCAL_RANK" in os.environ:
        yield
        return
    if not torch.distributed.is_initialized():
        store = HashStore()
        torch.distributed.init_process_group(store=store, rank=0, world_size=1)
    os.environ["LOCAL_RANK"] = "0"
    try:
        yield
    finally:
        # accelerate would take it as a sign of a launcher.
        del os.environ["LOCAL_RANK"]
