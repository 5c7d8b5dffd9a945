"""AdamW's state of a DeepSpeed engine, whole, in the form of `torch.optim.AdamW.state_dict`.

ZeRO keeps one flat slice of it in each process. Written whole, a checkpoint does not depend on the
stage or on the number of processes, and is the same file that the local learner writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from colearn.errors import CheckpointError

_MOMENTS = ("exp_avg", "exp_avg_sq")


def read_state(engine: Any, parameters: Sequence[nn.Parameter]) -> dict[str, Any]:
    """Every process must call; the tensors are whole in each."""
    from deepspeed.utils import safe_get_full_optimizer_state

    adam = _adam(engine)
    group = {key: value for key, value in adam.param_groups[0].items() if key != "params"}
    state: dict[int, dict[str, Any]] = {}
    if adam is engine.optimizer:
        state = adam.state_dict()["state"]
    elif adam.state:
        (flat,) = adam.param_groups[0]["params"]
        for number, parameter in enumerate(parameters):
            moments = {key: safe_get_full_optimizer_state(parameter, key) for key in _MOMENTS}
            state[number] = {"step": adam.state[flat]["step"], **moments}
    numbered = list(range(len(parameters)))
    return {"state": state, "param_groups": [{**group, "params": numbered}]}


def write_state(engine: Any, parameters: Sequence[nn.Parameter], saved: dict[str, Any]) -> None:
    """The inverse, after the weights themselves have been copied into `parameters`.

    Errors: CheckpointError where parameters have made different numbers of steps.
    """
    adam = _adam(engine)
    if adam is engine.optimizer:
        adam.load_state_dict(saved)
        return
    engine.optimizer.refresh_fp32_params()
    (flat,) = adam.param_groups[0]["params"]
    adam.state.clear()
    options = {key: value for key, value in saved["param_groups"][0].items() if key != "params"}
    adam.param_groups[0].update(options)
    if not saved["state"]:
        return
    steps = {float(state["step"]) for state in saved["state"].values()}
    if len(steps) > 1 or len(saved["state"]) != len(parameters):
        raise CheckpointError(
            "run.learner: in this checkpoint some weights have made fewer steps than others, which "
            "ZeRO cannot hold; resume with run.learner: local"
        )
    _write_moments(engine, flat, parameters, saved["state"], steps.pop())


def _write_moments(
    engine: Any,
    flat: torch.Tensor,
    parameters: Sequence[nn.Parameter],
    state: dict[int, dict[str, torch.Tensor]],
    step: float,
) -> None:
    from deepspeed.utils import safe_set_full_optimizer_state
    from deepspeed.utils.mixed_precision_linkage import lazy_init_hp_params_optimizer_state

    moments = {key: torch.zeros_like(flat) for key in _MOMENTS}
    optimizer = engine.optimizer
    optimizer.optimizer.state[flat] = {"step": torch.tensor(step), **moments}
    # DeepSpeed ties each weight to its slice of the moments once, at its first step; the slices
    # made here are new.
    for group in optimizer.bit16_groups:
        lazy_init_hp_params_optimizer_state(group, flat, optimizer.optimizer.state)
    for number, parameter in enumerate(parameters):
        for key in _MOMENTS:
            safe_set_full_optimizer_state(parameter, state[number][key].to(flat.device), key)


def _adam(engine: Any) -> Any:
    """The AdamW itself: ZeRO wraps it, stage 0 does not."""
    return getattr(engine.optimizer, "optimizer", engine.optimizer)
