"""Validates a DeepSpeed JSON config and completes it from the learner's settings."""

from __future__ import annotations

import importlib.resources
import json
from pathlib import Path
from typing import Any

from colearn.config import OptimizerSettings
from colearn.errors import ConfigError, nearest

FIELD = "run.learner.config"
STAGES = (0, 2)

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
"""Keys that the learner sets, and where the user says what they say."""

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
"""Keys that are passed on. DeepSpeed itself ignores a misspelt one in silence."""

_NOT_YET = ("offload_optimizer", "offload_param", "zenflow", "zero_hpz_partition_size")


def engine_config(source: str, settings: OptimizerSettings) -> dict[str, Any]:
    """The whole config of one engine, from a shipped name or the path of a JSON.

    Errors: ConfigError for a missing file, a stage other than 0 or 2, or a key not the user's.
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
            f"{FIELD}: {source}: zero_optimization.stage must be 0 or 2, got {stage}; use zero0 or "
            "zero2"
        )
    for key in _NOT_YET:
        if key in zero:
            raise ConfigError(
                f"{FIELD}: {source}: zero_optimization.{key} is not supported at stage 0 or 2 "
                "here; remove it"
            )
    return config | {
        # Any number of micro-batches may precede a step, so the learner says when to step
        # (managed_gradient_accumulation off), and nothing is divided by a number of them (1).
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": 1,
        "managed_gradient_accumulation": False,
        # Objectives return parts of a sum over the whole minibatch. DeepSpeed's default would
        # divide their gradients by the number of processes.
        "gradient_allreduce_op": "sum",
        # At stage 0 DeepSpeed keeps no norm, so the learner clips there itself.
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
        config = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:120]
        raise ConfigError(f"{FIELD}: cannot read {source} ({reason}); give a JSON file") from None
    if not isinstance(config, dict):
        raise ConfigError(f"{FIELD}: {source} must hold a JSON object; see configs/deepspeed")
    return config
