"""Mapping from settings of TRL's trainers to colearn's settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Counterpart:
    """The colearn counterpart of a TRL setting."""

    keys: tuple[str, ...]
    """Dotted keys of a config; empty if no key corresponds to the TRL setting."""
    note: str = ""
    """The difference between TRL's setting and the counterpart, or advice if no counterpart
    exists."""
    argument: str = ""
    """The argument of `colearn.train` that replaces the TRL setting, if this argument is not the
    section of `keys`."""


def _is(*keys: str, note: str = "", argument: str = "") -> Counterpart:
    return Counterpart(keys, note, argument)


_VLLM = _is("run.generator", note="`run.generator: vllm`, or `vllm_server` with `url`")
_OPTIONS = _is("run.generator", note="`{name: vllm, options: {...}}` holds vLLM's own arguments")
_TOKENIZER = Counterpart((), "it is read from the model's folder", "models=(model, tokenizer)")
_UNUSED = Counterpart((), "answers are sampled without it; leave it out")
_LOGGED = Counterpart((), "every iteration is logged; leave it out")
_PRECISION = _is("models.*.dtype", note="`dtype: bfloat16`")
_STEPS = _is("train.iterations", "train.environment_steps", note="the first limit reached ends it")
_FOLDER = Counterpart((), "the run's folder is `--out`", "out=...")
_HUB = Counterpart((), "`colearn export RUN --push USER` pushes a finished run's agents")

TRL_NAMES: Mapping[str, Counterpart] = {
    # GRPOTrainer
    "model": _is("models.*.path", argument="models=..."),
    "args": Counterpart((), "sections such as `train` take its place: docs/howto/data.md"),
    "reward_funcs": _is("task.reward", argument="reward=..."),
    "train_dataset": _is("task.path", argument="data=..."),
    "eval_dataset": _is("task.test_path", argument='data={"train": ..., "test": ...}'),
    "processing_class": _TOKENIZER,
    "tokenizer": _TOKENIZER,
    "peft_config": _is("models.*.lora"),
    "quantization_config": _is("models.*.quantization"),
    "optimizers": _is("models.*.learning_rate", "models.*.schedule", note="AdamW is the optimiser"),
    "tools": Counterpart((), "a workflow or an environment has tools: docs/howto/workflows.md"),
    "environment_factory": _is("task.factory", note="of the task `environment`"),
    "rollout_func": Counterpart((), "a task or a gateway plays episodes: docs/howto/gateway.md"),
    # GRPOConfig: batches and budget
    "num_generations": _is(
        "algorithm.rollout.k", note="of algorithms with groups, such as magrpo and grpo"
    ),
    "num_generations_eval": _is("evaluation.repeats"),
    "per_device_train_batch_size": _is(
        "train.episodes", note="items of an iteration, each with `algorithm.rollout.k` samples"
    ),
    "generation_batch_size": _is(
        "train.episodes", note="items of an iteration, each with `algorithm.rollout.k` samples"
    ),
    "per_device_eval_batch_size": _is("evaluation.episodes", "evaluation.at_once"),
    "gradient_accumulation_steps": _is(
        "train.minibatch",
        "train.token_budget",
        note="an optimiser step takes `minibatch` joint actions; `token_budget` bounds memory",
    ),
    "steps_per_generation": _is(
        "train.minibatch", note="joint actions of an optimiser step; fewer give more steps"
    ),
    "num_iterations": _is("train.epochs"),
    "num_train_epochs": _STEPS,
    "max_steps": _STEPS,
    # sampling
    "max_completion_length": _is("agents.*.sampling.max_tokens"),
    "max_prompt_length": _is(
        "agents.*.overflow", note="prompts are not cut; it says what too long a history does"
    ),
    "min_p": _UNUSED,
    "repetition_penalty": _UNUSED,
    "generation_kwargs": _is("agents.*.sampling"),
    "chat_template_kwargs": _is("agents.*.template"),
    "max_tool_calling_iterations": _is("task.horizon", note="one more, for the last answer"),
    "use_vllm": _VLLM,
    "vllm_mode": _is(
        "run.generator", note="`vllm` in the trainer's process, `vllm_server` beside it"
    ),
    "vllm_server_base_url": _is("run.generator.url"),
    "vllm_server_host": _is("run.generator.url"),
    "vllm_server_port": _is("run.generator.url"),
    "vllm_server_timeout": _is("run.generator.start_minutes"),
    "vllm_gpu_memory_utilization": _is("run.generator.cache_gib"),
    "vllm_max_model_length": _is("run.generator.max_length"),
    "vllm_tensor_parallel_size": _OPTIONS,
    "vllm_importance_sampling_cap": _is("algorithm.loss.importance_cap"),
    "vllm_importance_sampling_correction": _is("algorithm.loss.importance_cap"),
    # loss and advantages
    "beta": _is("algorithm.loss.kl"),
    "epsilon": _is("algorithm.loss.clip"),
    "epsilon_high": _is("algorithm.loss.clip_high"),
    "delta": _is("algorithm.loss.dual_clip"),
    "entropy_coef": _is("algorithm.loss.entropy"),
    "importance_sampling_level": _is(
        "algorithm.loss.ratio", note="TRL's `sequence` is `geometric`"
    ),
    "loss_type": _is(
        "algorithm.loss.reduction",
        note="`grpo` is `action_mean`, `dapo` is `token_mean`; for `cispo` set ratio_cap",
    ),
    "scale_rewards": _is("algorithm.advantage.normalize_std"),
    "reward_weights": _is("task.weights"),
    "mask_truncated_completions": Counterpart(
        (), "cut answers are trained; the metric `truncated` counts them"
    ),
    "sync_ref_model": _is("algorithm.loss.reference_update_every"),
    "ref_model_sync_steps": _is("algorithm.loss.reference_update_every"),
    # TrainingArguments
    "adam_beta1": _is("models.*.betas"),
    "adam_beta2": _is("models.*.betas"),
    "lr": _is("models.*.learning_rate", "critic.learning_rate"),
    "lr_scheduler_type": _is("models.*.schedule"),
    "warmup_ratio": _is("models.*.warmup_steps", note="a number of optimiser steps"),
    "optim": Counterpart((), "AdamW is the optimiser; leave it out"),
    "bf16": _PRECISION,
    "fp16": _PRECISION,
    "torch_dtype": _PRECISION,
    "gradient_checkpointing": _is("models.*.checkpointing"),
    "deepspeed": _is("run.learner", note="`{name: deepspeed, config: FILE}`"),
    "ds_config": _is("run.learner", note="`{name: deepspeed, config: FILE}`"),
    "fsdp": _is("run.learner", note="`{name: deepspeed, config: zero3}`"),
    "output_dir": _FOLDER,
    "logging_dir": _FOLDER,
    "resume_from_checkpoint": Counterpart((), "`colearn train --resume`", "resume=True"),
    "report_to": _is("run.trackers"),
    "run_name": Counterpart((), "trackers take the name of the run's folder"),
    "logging_steps": _LOGGED,
    "logging_strategy": _LOGGED,
    "log_completions": _is("evaluation.transcripts"),
    "num_completions_to_print": _is("run.callbacks", note="`{name: samples, count: N}`"),
    "save_steps": _is("run.checkpoint_every"),
    "save_strategy": _is("run.checkpoint_every", "run.checkpoint_minutes"),
    "save_total_limit": _is("run.keep_checkpoints"),
    "eval_steps": _is("evaluation.every"),
    "eval_strategy": _is("evaluation.every"),
    "metric_for_best_model": _is("evaluation.headline.metric"),
    "greater_is_better": _is("evaluation.headline.better"),
    "push_to_hub": _HUB,
    "hub_model_id": _HUB,
    "data_seed": _is("run.seed"),
    "use_cpu": _is("run.device"),
}
"""Counterparts by TRL name. Settings with the same name in both libraries, such as `temperature`,
need no entry."""
