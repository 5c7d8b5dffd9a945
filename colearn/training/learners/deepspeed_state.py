"""Reads and writes a DeepSpeed engine's AdamW state in the form of `torch.optim.AdamW.state_dict`.

ZeRO keeps one flat slice of the state in each process. This module saves the full state, so that a
checkpoint does not depend on the stage or the number of processes. The format of the state is the
same as the local learner's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from colearn.errors import CheckpointError

from .deepspeed_shards import Shards

_MOMENTS = ("exp_avg", "exp_avg_sq")


def read_state(
    engine: Any, parameters: Sequence[nn.Parameter], *, keep: bool = True
) -> dict[str, Any]:
    """Return the full state in CPU memory, without moments if `keep` is False; all processes must
    call this function.

    The device holds the full moment of only one parameter at a time, since Adam's moments of all
    parameters are together twice as large as the weights.
    """
    from deepspeed.utils import safe_get_full_optimizer_state

    adam = _adam(engine)
    group = {key: value for key, value in adam.param_groups[0].items() if key != "params"}
    state: dict[int, dict[str, Any]] = {}
    if adam is engine.optimizer:
        state = adam.state_dict()["state"]
    elif adam.state:
        flat = next(iter(adam.state))
        for number, parameter in enumerate(parameters):
            moments: dict[str, Any] = {"step": torch.tensor(float(adam.state[flat]["step"]))}
            for key in _MOMENTS:
                moment = safe_get_full_optimizer_state(parameter, key)
                if keep:
                    moments[key] = moment.cpu()
            if keep:
                state[number] = moments
    numbered = list(range(len(parameters)))
    return {"state": state, "param_groups": [{**group, "params": numbered}]}


def write_state(engine: Any, parameters: Sequence[nn.Parameter], saved: dict[str, Any]) -> None:
    """Restore the state, after the weights have been copied into `parameters`.

    Errors: CheckpointError if parameters have different step counts.
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
    if saved["state"]:
        step = _steps_of(parameters, saved)
        _write_moments(engine, flat, parameters, saved["state"], step)


def write_shards(
    engine: Any, shards: Shards, parameters: Sequence[nn.Parameter], saved: dict[str, Any]
) -> None:
    """Restore the state at stage 3, after this process's shards of the weights have been replaced.

    Errors: as for `write_state`.
    """
    adam = _adam(engine)
    adam.state.clear()
    options = {key: value for key, value in saved["param_groups"][0].items() if key != "params"}
    adam.param_groups[0].update(options)
    if not saved["state"]:
        return
    step = _steps_of(parameters, saved)
    deepspeed_adam = not isinstance(adam, torch.optim.AdamW)  # DeepSpeed's, for offloaded state
    if deepspeed_adam:
        _count_again(adam, int(step))
    for flat in engine.optimizer.fp32_partitioned_groups_flat:
        moments = {key: torch.zeros_like(flat) for key in _MOMENTS}
        adam.state[flat] = {"step": int(step) if deepspeed_adam else torch.tensor(step), **moments}
    for number, parameter in enumerate(parameters):
        for key in _MOMENTS:
            shards.write(parameter, saved["state"][number][key], key)


def _steps_of(parameters: Sequence[nn.Parameter], saved: dict[str, Any]) -> float:
    steps = {float(state["step"]) for state in saved["state"].values()}
    if len(steps) > 1 or len(saved["state"]) != len(parameters):
        raise CheckpointError(
            "run.learner: in this checkpoint some weights have made fewer steps than others, which "
            "ZeRO cannot hold; resume with run.learner: local"
        )
    return steps.pop()


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
    # DeepSpeed maps each weight to its slice of the moments once, at its first step; these slices
    # are new.
    for group in optimizer.bit16_groups:
        lazy_init_hp_params_optimizer_state(group, flat, optimizer.optimizer.state)
    for number, parameter in enumerate(parameters):
        for key in _MOMENTS:
            safe_set_full_optimizer_state(parameter, state[number][key].to(flat.device), key)


def _count_again(adam: Any, steps: int) -> None:
    """Advance DeepSpeed's Adam to a given step count by making steps on empty tensors. In each
    step, Adam multiplies the powers of its betas once more. An Adam that started directly at a
    later step would compute these powers with different rounding (one bit at step 3 for beta
    0.999)."""
    group, empty = adam.param_groups[0], [torch.empty(0) for _ in range(4)]
    for step in range(1, steps + 1):
        adam.ds_opt_adam.adam_update(
            adam.opt_id,
            step,
            group["lr"],
            *group["betas"],
            group["eps"],
            group["weight_decay"],
            group["bias_correction"],
            *empty,
        )


def _adam(engine: Any) -> Any:
    """Return the engine's AdamW optimiser without ZeRO's wrapper; at stage 0 there is no
    wrapper."""
    return getattr(engine.optimizer, "optimizer", engine.optimizer)
