"""Reads the folder of a peft adapter: the adapter's base model, and whether the adapter can be
merged."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from colearn.errors import ConfigError, reason_of

from .hub_files import revision_folder
from .missing_folder import refuse_missing_folder

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
BASE = "base_model_name_or_path"
_PROMPTS = ("PROMPT_TUNING", "MULTITASK_PROMPT_TUNING", "PREFIX_TUNING", "P_TUNING", "CPT")
"""Names of peft's adapter types that only prepend virtual tokens to the prompt."""

_BASE_CHANGED = ("pissa_niter", "lora_ga")
"""Prefixes of initialisations for which peft also changes the base weights, by random or
gradient-based values. A base that is loaded later lacks this change, and peft gives no warning."""


def is_adapter(path: str) -> bool:
    """Whether a path is the folder of an adapter. As in transformers, a folder with an adapter
    counts as an adapter even if it also contains a config.json."""
    return os.path.isfile(os.path.join(path, CONFIG))  # False for a name that no file can have


def adapter_base(path: str, field: str, *, weights: bool = False) -> str:
    """Return the folder or hub name of an adapter's base model: as `base_of`.

    Errors: as `base_of`, and ConfigError naming `field` if the adapter cannot be merged into a base
    model.
    """
    config = adapter_config(path, field)
    kind, task, base = (config.get(k) for k in ("peft_type", "task_type", BASE))
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
        raise ConfigError(f"{subject} names no base; write {BASE} into its {CONFIG}")
    if not (Path(path) / WEIGHTS).is_file():
        raise ConfigError(
            f"{subject} holds no {WEIGHTS}; save it with safe_serialization=True (pickled files "
            "are not read)"
        )
    if base.startswith((".", "/", "~")) and not Path(base).is_dir():
        raise ConfigError(
            f"{subject} is on the base {base[:200]}, and there is no such folder; correct "
            f"{BASE} in its {CONFIG}"
        )
    if Path(base).is_dir() and Path(base).resolve() == Path(path).resolve():
        raise ConfigError(
            f"{subject} names its own folder as its base; move the base to a folder of its own"
        )
    return base_of(path, field, weights=weights)


def base_of(path: str, field: str, *, weights: bool = False) -> str:
    """Return the folder or hub name of the model that an adapter names as its base. With a
    revision, or with `weights`, a base on the hub is downloaded, and its folder is returned.

    Errors: ConfigError naming `field` for an adapter without a base, and for a base or revision
    that does not exist.
    """
    base, revision = adapter_config(path, field).get(BASE), base_revision(path, field)
    subject = f"{field}: the adapter {path[:200]}"
    if not isinstance(base, str) or not base:
        raise ConfigError(f"{subject} names no base; write {BASE} into its {CONFIG}")
    if os.path.isdir(base) or not (weights or revision is not None):
        return base
    refuse_missing_folder(base, field)
    return revision_folder(base, revision, weights=weights, subject=subject)


def base_revision(path: str, field: str) -> str | None:
    """Return the branch, tag or commit that an adapter names for its base; None for the default
    branch and for a base that is a folder.

    Errors: ConfigError naming `field` for a revision that a base cannot have.
    """
    config = adapter_config(path, field)
    base, revision = config.get(BASE), config.get("revision")
    subject = f"{field}: the adapter {path[:200]}"
    if revision is not None and (not isinstance(revision, str) or not revision):
        raise ConfigError(
            f"{subject} names revision {revision!r:.40} of its base; write a branch, tag or "
            f"commit, or null, into its {CONFIG}"
        )
    if not (isinstance(base, str) and os.path.isdir(base)):
        return revision
    if revision not in (None, "main"):
        raise ConfigError(
            f"{subject} is on revision {revision[:200]!r} of the folder {base[:200]}, and a folder "
            f"has no revisions; remove revision from its {CONFIG}, or name the base on the hub"
        )
    return None


def loaded_revision(path: str, field: str) -> str | None:
    """Return the revision to give to transformers' loaders, which apply it to the base if `path` is
    an adapter, and to the adapter too if the adapter is on the hub.

    Errors: as `base_revision`, and ConfigError for an adapter on the hub that names a revision.
    """
    from transformers.utils.peft_utils import find_adapter_config_file

    if is_adapter(path):
        return base_revision(path, field)
    file = None if os.path.isdir(path) else find_adapter_config_file(path)
    if file is not None and base_revision(str(Path(file).parent), field) is not None:
        raise ConfigError(
            f"{field}: the adapter {path[:200]} names a revision of its base; download the adapter "
            "and give its folder"
        )
    return None


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
