"""Which model files a checkpoint builds on: digests, kept in it and compared when it is used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from colearn.config import ResolvedRun
from colearn.contract import NetworkKey
from colearn.errors import CheckpointError

from .adapter_folder import is_adapter
from .digest import file_digests

Bases = Mapping[str, Mapping[str, str]]
"""By field of the config: the digests of the files that its path names."""


def bases_of(run: ResolvedRun, folders: Mapping[str, str]) -> Bases:
    """Digests of a run's models: settings and tokenizers of all, weights of those that its
    checkpoints do not hold whole. `folders`: as `base_folders` returns them; models that are not
    among them are left out.

    Folders of models that the task or another section names are included.
    """
    weights: dict[str, tuple[str, bool]] = {}
    for key in run.networks:
        path, field = run.path(key), f"{key.section}.path"
        if path in folders:
            folder = path if is_adapter(path) else folders[path]
            needed = weights.get(field, (folder, False))[1] or not _kept_whole(run, key)
            weights[field] = folder, needed
    for field, text in _texts(run.config.model_dump(mode="json", exclude={"models", "critic"}), ""):
        if _is_model(text):
            weights[field] = text, True
    return {f: file_digests(path, f, weights=needed) for f, (path, needed) in weights.items()}


def check_bases(checkpoint: Path, kept: Bases, bases: Bases) -> None:
    """Errors: CheckpointError, one line, if a model's files are not those that the checkpoint was
    trained on. `kept`: its digests; a checkpoint of an earlier version has none."""
    for field in sorted(kept.keys() & bases.keys()):
        before, now = kept[field], bases[field]
        odd = [n for n in sorted(before.keys() | now.keys()) if before.get(n) != now.get(n)]
        if before and now and odd:
            raise CheckpointError(
                f"{field}: {odd[0]} of this model is not the one that {checkpoint} was trained on; "
                "put the model back, or start another run"
            )


def _kept_whole(run: ResolvedRun, key: NetworkKey) -> bool:
    """Whether checkpoints hold all weights of a network, so that its base's are not read again."""
    if run.settings(key).lora is not None:
        return False
    saved = key in run.learners or key.kind == "past"
    return saved or (key.kind == "reference" and run.moving)


def _texts(value: Any, field: str) -> Iterator[tuple[str, str]]:
    """All texts in a plain config, by dotted key."""
    if isinstance(value, str):
        yield field, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _texts(inner, f"{field}.{key}".lstrip("."))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _texts(inner, f"{field}.{number}")


def _is_model(text: str) -> bool:
    """Whether a text is the path of a model's folder."""
    if not text or len(text) > 4096 or "\0" in text or "\n" in text:
        return False
    folder = Path(text)
    try:
        described = (folder / "config.json").is_file() or is_adapter(text)
        return described and any(folder.glob("*.safetensors"))
    except OSError:  # a name that is too long for a file
        return False
