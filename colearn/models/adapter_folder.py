"""Reads the folder of a peft adapter: the adapter's base model and its revision."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from colearn.errors import ConfigError, reason_of

from .hub_files import revision_folder
from .missing_folder import refuse_missing_folder

CONFIG = "adapter_config.json"
BASE = "base_model_name_or_path"


def is_adapter(path: str) -> bool:
    """Whether a path is the folder of an adapter. As in transformers, a folder with an adapter
    counts as an adapter even if it also contains a config.json."""
    return os.path.isfile(os.path.join(path, CONFIG))  # False for a name that no file can have


def refuse_adapter(path: str, field: str) -> None:
    """Errors: ConfigError naming `field` if the path is an adapter, which is not a whole model."""
    if is_adapter(path):
        raise ConfigError(
            f"{field}: {path[:200]} is an adapter; merge it into its base with peft "
            "(merge_and_unload), or export it without --adapter, and name the merged folder"
        )


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
