"""Files of models on the hub: a model's folder in the hub's cache, and the folder of a revision."""

from __future__ import annotations

import os
from pathlib import Path

from colearn.errors import ConfigError, reason_of

SETTINGS = (
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template.jinja",
    "chat_template.json",
    "vocab.json",
    "vocab.txt",
    "merges.txt",
    "tokenizer.model",
    "spiece.model",
)
"""Names of the files, other than weights, that transformers reads for a causal language model."""

_ADAPTER = ("adapter_config.json", "adapter_model.safetensors")
_WEIGHTS = ("model*.safetensors", "model.safetensors.index.json")


def model_folder(path: str) -> Path | None:
    """Return a path's folder, or the cached snapshot of a hub name."""
    if os.path.isdir(path):
        return Path(path)
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        known = try_to_load_from_cache(path, "config.json")
    except HFValidationError:
        return None
    return Path(known).parent if isinstance(known, str) else None


def revision_folder(name: str, revision: str | None, *, weights: bool, subject: str) -> str:
    """Return the folder in the hub's cache that holds a model at a branch, tag or commit (None: the
    default branch). Files that are missing there are downloaded; `weights`: with the weights.

    Errors: ConfigError beginning with `subject` if there is no such model or revision.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    patterns = [*SETTINGS, *_ADAPTER, *(_WEIGHTS if weights else ())]
    try:
        return snapshot_download(name, revision=revision, allow_patterns=patterns)
    except (OSError, ValueError, HfHubHTTPError, HFValidationError) as error:
        named = "" if revision is None else f"revision {revision[:200]!r} of "
        raise ConfigError(
            f"{subject} is on {named}{name[:200]}, which neither the hub nor its cache on this "
            f"machine has ({reason_of(error)}); correct the base or its revision"
        ) from None
