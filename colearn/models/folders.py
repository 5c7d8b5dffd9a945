"""Prepares the model folders of a run: builds embedded models, merges adapters, resolves every
path."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from colearn.config import ResolvedRun
from colearn.contract import NetworkKey

from .embedded import embedded_model, embedded_with_digests
from .embedded_recipes import is_embedded
from .merging import merged_folder
from .sources import Sources


def base_folders(
    run: ResolvedRun, keys: Iterable[NetworkKey], saved: Sources | None = None
) -> dict[str, str]:
    """Folder or hub name of each base model of these networks, keyed by the path in the config.

    Embedded models are built for the run's task; adapters are merged with their base models. saved:
    the digests in a checkpoint, by which an embedded model is found in the cache without the task,
    whose objects a program may have given.
    Errors: ConfigError naming the field.
    """
    folders: dict[str, str] = {}
    for key in keys:
        path = run.path(key)
        if path not in folders:
            field = run.field(key)
            if is_embedded(path):
                folder = embedded_with_digests(path, (saved or {}).get(field, {}))
                folders[path] = str(folder or embedded_model(run.task, path, field))
            else:
                folders[path] = merged_folder(path, field)
    return folders


def with_folders(run: ResolvedRun, folders: Mapping[str, str] | None = None) -> ResolvedRun:
    """Return a copy of the run in which each model path in `folders` is replaced by its folder.
    `folders` defaults to the result of `base_folders`. Errors: as `base_folders`."""
    folders, config = folders or base_folders(run, run.networks), run.config
    models = {
        name: model.model_copy(
            update={
                "path": folders.get(model.path, model.path),
                "teacher": folders.get(model.teacher or "", model.teacher),
            }
        )
        for name, model in config.models.items()
    }
    critic = config.critic
    if critic is not None and critic.path is not None:
        path = folders.get(critic.path, critic.path)
        critic = critic.model_copy(update={"path": path})
    return replace(run, config=config.model_copy(update={"models": models, "critic": critic}))
