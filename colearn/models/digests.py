"""SHA-256 digests of the files of models; a copy of a folder has equal digests."""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from pathlib import Path

from .adapter_folder import CONFIG, adapter_base, adapter_config, is_adapter
from .hub_files import SETTINGS, model_folder

CRITIC = "critic.json"
"""Name of the file that describes a saved critic."""


def settings_digests(folder: Path) -> dict[str, str]:
    """Return the digests of the settings and tokenizer files at the top level of a model's folder,
    keyed by file name."""
    return {name: digest(folder / name) for name in SETTINGS if (folder / name).is_file()}


def file_digests(path: str, field: str, *, weights: bool = True) -> dict[str, str]:
    """Return the digests of a model's files, keyed by file name. Without `weights`, only settings
    and tokenizer files are included. For an adapter, the base's files are included as base/NAME.
    The result is empty if `path` is a hub name that is not in the cache, or not with the weights.

    Errors: ConfigError naming `field` for an adapter whose base is not known.
    """
    folder = model_folder(path)
    if folder is None:
        return {}
    digests = settings_digests(folder)
    if (folder / CRITIC).is_file():
        digests[CRITIC] = digest(folder / CRITIC)
    if weights:
        files = sorted(folder.glob("*.safetensors"))
        if not files and str(folder) != path:
            return {}
        digests |= {file.name: digest(file) for file in files}
    if is_adapter(path):
        config = adapter_config(path, field)
        for name in ("base_model_name_or_path", "revision"):  # the base may be moved
            config.pop(name, None)
        plain = json.dumps(config, sort_keys=True).encode()
        digests[CONFIG] = hashlib.sha256(plain).hexdigest()
        base = file_digests(adapter_base(path, field, weights=weights), field, weights=weights)
        digests |= {f"base/{name}": digest for name, digest in base.items()}
    return digests


def digest(path: Path) -> str:
    """SHA-256 of a file; each process reads the file once."""
    status = path.stat()
    return _content(path, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


@lru_cache(maxsize=4096)
def _content(path: Path, *status: int) -> str:
    """Return the digest of a file's content, cached in this process under the file's status. The
    status includes ctime, which a program cannot set to an earlier time."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
