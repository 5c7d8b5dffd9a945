"""Validates a DeepSpeed JSON config and completes it from the learner's settings."""

from __future__ import annotations

import importlib.resources
import sys
from pathlib import Path
from typing import Any

from colearn.config import OptimizerSettings
from colearn.errors import ConfigError, nearest, reason_of
from colearn.text.json_value import read_json

FIELD = "run.learner.config"
STAGES = (0, 1, 2, 3)

_OWN = {
    "train_batch_size": "train.minibatch",
    "train_micro_batch_size_per_gpu": "train.token_budget",
    "gradient_accumulation_steps": "train.token_budget",
    "managed_gradient_accumulation": "train.token_budget",
    "optimizer": "learning_rate, betas and weight_decay of models.NAME and critic",
    "scheduler": "schedule and warmup_steps of models.NAME and critic",
    "gradient_clipping": "max_grad_norm of models.NAME and critic",
    "gradient_allreduce_op": "the loss, whose parts always add up over processes",
    "gradient_predivide_factor": "the loss, whose parts always add up over processes",
    "prescale_gradients": "the loss, whose parts always add up over processes",
    "fp16": "dtype of models.NAME and critic",
    "bf16": "dtype of models.NAME and critic",
    "amp": "dtype of models.NAME and critic",
    "torch_autocast": "dtype of models.NAME and critic",
    "data_types": "dtype of models.NAME and critic",
}
"""Keys set by the learner, with the settings that determine them."""

_FREE = {
    "comms_logger",
    "communication_data_type",
    "dump_state",
    "flops_profiler",
    "memory_breakdown",
    "steps_per_print",
    "timers",
    "wall_clock_breakdown",
    "zero_optimization",
}
"""Keys forwarded to DeepSpeed, which silently ignores unknown keys."""

_SIZES = ("reduce_bucket_size", "allgather_bucket_size", "stage3_prefetch_bucket_size")
_OFFLOADS = ("offload_optimizer", "offload_param")
_NOT_YET = ("zenflow", "zero_hpz_partition_size")


def engine_config(
    source: str, settings: OptimizerSettings, *, adapter: bool = False
) -> dict[str, Any]:
    """Return the complete config of one engine, from a shipped name or the path of a JSON file.

    `adapter`: whether the engine trains a LoRA adapter; stage 3 does not shard the weights of
    adapters. Errors: ConfigError for a missing file, an unknown stage, or a key that the learner
    sets.
    """
    config = _read(source)
    for key in config:
        if key in _OWN:
            raise ConfigError(
                f"{FIELD}: {source} sets {key}, which follows from {_OWN[key]}; remove it there"
            )
        if key not in _FREE:
            raise ConfigError(f"{FIELD}: {source}: unknown key {key}; {nearest(key, _FREE)}")
    zero = config.setdefault("zero_optimization", {"stage": 0})
    stage = zero.get("stage") if isinstance(zero, dict) else None
    if type(stage) is not int or stage not in STAGES:
        raise ConfigError(
            f"{FIELD}: {source}: zero_optimization.stage must be 0, 1, 2 or 3, got {stage}; use "
            "zero0, zero1, zero2, zero3 or zero3_offload"
        )
    for key in _SIZES:
        size = zero.get(key, 1)
        if isinstance(size, bool) or not isinstance(size, int | float) or not 1 <= size < 2**63:
            raise ConfigError(
                f"{FIELD}: {source}: zero_optimization.{key} must be a number of elements, 1 or "
                f"more, got {str(size)[:40]}"
            )
    for key in _NOT_YET:
        if key in zero:
            raise ConfigError(
                f"{FIELD}: {source}: zero_optimization.{key} is not supported here; remove it"
            )
    for key in _OFFLOADS:
        if key in zero and stage != 3:
            raise ConfigError(
                f"{FIELD}: {source}: zero_optimization.{key} needs stage 3; set it, or remove {key}"
            )
        target = zero.get(key, {"device": "cpu"})
        if not isinstance(target, dict) or target.get("device") != "cpu":
            raise ConfigError(
                f"{FIELD}: {source}: zero_optimization.{key} must be {{device: cpu}}; no disk is "
                "supported"
            )
    if stage == 3 and adapter:
        config["zero_optimization"] = zero | {"stage3_param_persistence_threshold": sys.maxsize}
    return config | {
        # A step follows any number of micro-batches: the learner triggers it
        # (managed_gradient_accumulation off), and gradients are not divided by a count (1).
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": 1,
        "managed_gradient_accumulation": False,
        # Objectives return parts of one sum over the minibatch. By default DeepSpeed divides
        # gradients by the number of processes; stage 3 always does, so the learner multiplies.
        "gradient_allreduce_op": "mean" if stage == 3 else "sum",
        # At stage 0 DeepSpeed reports no norm, so the learner clips.
        "gradient_clipping": settings.max_grad_norm if stage else 0.0,
        "optimizer": {
            "type": "AdamW",
            "params": {
                "lr": settings.learning_rate,
                "betas": list(settings.betas),
                "weight_decay": settings.weight_decay,
                "torch_adam": True,
            },
        },
    }


def _read(source: str) -> dict[str, Any]:
    shipped = importlib.resources.files("colearn.configs") / "deepspeed"
    names = sorted(f.name.removesuffix(".json") for f in shipped.iterdir() if f.is_file())
    file = shipped / f"{source}.json" if source in names else Path(source)
    if source not in names and not source.endswith(".json"):
        raise ConfigError(
            f"{FIELD}: unknown name '{source}'; give a .json or {nearest(source, names)}"
        )
    try:
        config = read_json(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{FIELD}: cannot read {source} ({reason_of(error)}); give a JSON file"
        ) from None
    if not isinstance(config, dict):
        raise ConfigError(f"{FIELD}: {source} must hold a JSON object; see configs/deepspeed")
    return config
