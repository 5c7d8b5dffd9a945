"""SHA-256 digests of the files of models and of other files that a run reads. Digests are saved
with a checkpoint and compared when the checkpoint is used; a copy of a folder has equal digests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from colearn.config import ResolvedRun
from colearn.contract import NetworkKey
from colearn.errors import CheckpointError

from .adapter_folder import CONFIG, adapter_base, adapter_config, is_adapter
from .hub_files import SETTINGS, model_folder


def settings_digests(folder: Path) -> dict[str, str]:
    """Return the digests of the settings and tokenizer files at the top level of a model's folder,
    keyed by file name."""
    return {name: digest(folder / name) for name in SETTINGS if (folder / name).is_file()}


def file_digests(path: str, field: str, *, weights: bool = True) -> dict[str, str]:
    """Return the digests of a model's files, keyed by file name. Without `weights`, only settings
    and tokenizer files are included. For an adapter, the base's files are included as base/NAME.
    The result is empty if `path` is a hub name that is not in the cache.

    Errors: ConfigError naming `field` for an adapter whose base is not known.
    """
    folder = model_folder(path)
    if folder is None:
        return {}
    digests = settings_digests(folder)
    if weights:
        digests |= {file.name: digest(file) for file in sorted(folder.glob("*.safetensors"))}
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


Bases = Mapping[str, Mapping[str, str]]
"""Digests of the files at each path in the config, keyed by config field and then by file name."""

_DATA = (".jsonl", ".json", ".csv", ".txt", ".md", ".parquet")
"""Suffixes of the data files that tasks read from a folder."""


def bases_of(run: ResolvedRun, folders: Mapping[str, str]) -> Bases:
    """Compute digests of the settings and tokenizers of all models of a run. Weights are included
    only for models that checkpoints do not save completely. `folders`: the result of
    `base_folders`; models missing from it are skipped.

    The task or another config section may name model folders, single files (for example data and
    chat templates), and folders of data (for example a corpus). Digests of these folders and files
    are included. If a data file changed, a resumed run would draw different rows.
    """
    weights: dict[str, tuple[str, bool]] = {}
    for key in run.networks:
        path, field = run.path(key), f"{key.section}.path"
        if path in folders:
            folder = path if is_adapter(path) else folders[path]
            needed = weights.get(field, (folder, False))[1] or not _kept_whole(run, key)
            weights[field] = folder, needed
    plain = run.config.model_dump(mode="json", exclude={"models", "critic"})
    for field, text in _texts(plain, ""):
        if _is_model(text):
            weights[field] = text, True
    digests = {f: file_digests(path, f, weights=needed) for f, (path, needed) in weights.items()}
    files = {f: text for f, text in _texts(plain, "") if f not in digests and _is_file(text)}
    digests |= {f: {Path(text).name: digest(Path(text).expanduser())} for f, text in files.items()}
    return digests | {
        field: _data_digests(Path(text).expanduser())
        for field, text in _texts(plain, "")
        if field.startswith("task.") and field not in digests and _is_data_folder(field, text)
    }


def check_bases(
    checkpoint: Path, checkpoint_bases: Bases, bases: Bases, *, rows: bool = False
) -> None:
    """Errors: CheckpointError, one line, if files differ from the files that were used to train the
    checkpoint. `checkpoint_bases`: the checkpoint's digests; empty if an earlier version of
    colearn wrote the checkpoint. `rows`: whether to compare the task's data files, too. A resumed
    run must have equal data files, because it draws further rows from them. Weights alone may be
    used with other data."""
    for field in sorted(checkpoint_bases.keys() & bases.keys()):
        if field.startswith("task.") and not (rows or "config.json" in bases[field]):
            continue
        before, current = checkpoint_bases[field], bases[field]
        differences = [
            n for n in sorted(before.keys() | current.keys()) if before.get(n) != current.get(n)
        ]
        if before and current and differences:
            model = field.startswith(("models.", "critic.")) or "config.json" in current
            suffix, back = (" of this model", "the model") if model else ("", "the file")
            raise CheckpointError(
                f"{field}: {differences[0]}{suffix} is not the one that {checkpoint} was trained "
                f"on; put {back} back, or start another run"
            )


def _kept_whole(run: ResolvedRun, key: NetworkKey) -> bool:
    """Whether checkpoints hold all weights of a network, so that the base model's weights are not
    read again."""
    if run.settings(key).lora is not None:
        return False
    saved = key in run.learners or key.kind == "past"
    return saved or (key.kind == "reference" and run.moving)


def _texts(value: Any, field: str) -> Iterator[tuple[str, str]]:
    """Return all strings in a plain config, keyed by dotted path."""
    if isinstance(value, str):
        yield field, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _texts(inner, f"{field}.{key}".lstrip("."))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _texts(inner, f"{field}.{number}")


def _is_model(text: str) -> bool:
    """Whether a string is the path of a model's folder."""
    if not _is_path(text):
        return False
    folder = Path(text)
    try:
        described = (folder / "config.json").is_file() or is_adapter(text)
        return described and any(folder.glob("*.safetensors"))
    except OSError:  # a name that is too long for a file
        return False


def _is_file(text: str) -> bool:
    """Whether a string is the path of an existing file with a suffix. A bare word is not a path,
    even if a file has that name."""
    try:
        return _is_path(text) and bool(Path(text).suffix) and Path(text).expanduser().is_file()
    except (OSError, RuntimeError):  # a name that is too long, a home that is not known
        return False


def _is_data_folder(field: str, text: str) -> bool:
    """Whether a string is the path of an existing folder. Except in `task.corpus`, a bare word is
    not a path, even if a folder has that name."""
    named = "/" in text or field == "task.corpus"
    try:
        return _is_path(text) and named and Path(text).expanduser().is_dir()
    except (OSError, RuntimeError):  # a name that is too long, a home that is not known
        return False


def _data_digests(folder: Path) -> dict[str, str]:
    """Digests of the data files under a folder, keyed by path within the folder."""
    return {
        file.relative_to(folder).as_posix(): digest(file)
        for file in sorted(folder.rglob("*"))
        if file.suffix in _DATA and file.is_file()
    }


def _is_path(text: str) -> bool:
    return bool(text) and len(text) <= 4096 and "\0" not in text and "\n" not in text
