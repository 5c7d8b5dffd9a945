"""Reads the folder of a peft adapter: the adapter's base model, and whether the adapter can be
merged."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from colearn.errors import ConfigError, reason_of

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
_PROMPTS = ("PROMPT_TUNING", "MULTITASK_PROMPT_TUNING", "PREFIX_TUNING", "P_TUNING", "CPT")
"""Names of peft's adapter types that only prepend virtual tokens to the prompt."""

_BASE_CHANGED = ("pissa_niter", "lora_ga")
"""Prefixes of initialisations for which peft also changes the base weights, by random or
gradient-based values. A base that is loaded later lacks this change, and peft gives no warning."""


def is_adapter(path: str) -> bool:
    """Whether a path is the folder of an adapter. As in transformers, a folder with an adapter
    counts as an adapter even if it also contains a config.json."""
    return os.path.isfile(os.path.join(path, CONFIG))  # False for a name that no file can have


def adapter_base(path: str, field: str) -> str:
    """Return the folder or hub name of an adapter's base model.

    Errors: ConfigError naming `field` if the adapter cannot be merged into a base model.
    """
    config = adapter_config(path, field)
    kind, task, base = (
        config.get(k) for k in ("peft_type", "task_type", "base_model_name_or_path")
    )
    subject = f"{field}: the adapter {path[:200]}"
    if kind in _PROMPTS:
        raise ConfigError(
            f"{subject} is {kind}, which changes no weights and cannot be merged; name a model, or "
            "a LoRA adapter"
        )
    begun = config.get("init_lora_weights")
    if isinstance(begun, str) and begun.startswith(_BASE_CHANGED):
        raise ConfigError(
            f"{subject} was begun by {begun}, which changed the base in a way that no file holds; "
            "save it again with path_initial_model_for_weight_conversion"
        )
    if task not in (None, "CAUSAL_LM"):
        raise ConfigError(
            f"{subject} is for {task}; name one of a causal language model (CAUSAL_LM)"
        )
    if not isinstance(base, str) or not base:
        raise ConfigError(
            f"{subject} names no base; write base_model_name_or_path into its {CONFIG}"
        )
    if not (Path(path) / WEIGHTS).is_file():
        raise ConfigError(
            f"{subject} holds no {WEIGHTS}; save it with safe_serialization=True (pickled files "
            "are not read)"
        )
    if base.startswith((".", "/", "~")) and not Path(base).is_dir():
        raise ConfigError(
            f"{subject} is on the base {base[:200]}, and there is no such folder; correct "
            f"base_model_name_or_path in its {CONFIG}"
        )
    if Path(base).is_dir() and Path(base).resolve() == Path(path).resolve():
        raise ConfigError(
            f"{subject} names its own folder as its base; move the base to a folder of its own"
        )
    return base


def adapter_config(path: str, field: str) -> dict[str, Any]:
    """Read adapter_config.json. Errors: ConfigError naming `field` for a damaged file."""
    try:
        config = json.loads((Path(path) / CONFIG).read_text(encoding="utf-8"))
        if not isinstance(config, dict):
            raise ValueError("no JSON object")
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(
            f"{field}: {Path(path) / CONFIG} cannot be read ({reason_of(error)}); save the adapter "
            "again"
        ) from None
    return config


def bottom(path: str, field: str) -> str:
    """Return the base model below a chain of adapters. A path that is not an adapter is returned
    unchanged.

    Errors: as for `adapter_base`, and ConfigError for a circular chain.
    """
    paths = set[str]()
    while is_adapter(path):
        if (known := str(Path(path).resolve())) in paths:
            raise ConfigError(f"{field}: the adapter {path[:200]} is on itself; correct its base")
        paths.add(known)
        path = adapter_base(path, field)
    return path


def tokenizer_path(path: str, field: str) -> str:
    """Return the folder of a model's tokenizer: the adapter's folder if it contains a tokenizer,
    else the base model's folder.

    Errors: as for `bottom`.
    """
    bottom(path, field)
    names = ("tokenizer.json", "tokenizer_config.json")
    while is_adapter(path) and not any((Path(path) / name).is_file() for name in names):
        path = adapter_base(path, field)
    return path
