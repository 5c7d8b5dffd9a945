"""Model folders of a run: builds its embedded models and resolves every path."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from colearn.config import ResolvedRun
from colearn.contract import NetworkKey

from .embedded import EMBEDDED, embedded_model


def base_folders(run: ResolvedRun, keys: Iterable[NetworkKey]) -> dict[str, str]:
    """Folder or hub name of each base of these networks, keyed by the path in the config.

    Embedded models are built for the run's task. Errors: ConfigError naming the field.
    """
    folders: dict[str, str] = {}
    for key in keys:
        path = run.path(key)
        if path not in folders:
            made = path.startswith(EMBEDDED)
            field = f"{key.section}.path"
            folders[path] = str(embedded_model(run.task, path, field)) if made else path
    return folders


def with_folders(run: ResolvedRun) -> ResolvedRun:
    """The run with each embedded model's name replaced by its folder. Errors: as `base_folders`."""
    folders, config = base_folders(run, run.networks), run.config
    models = {
        name: model.model_copy(update={"path": folders[model.path]})
        for name, model in config.models.items()
    }
    critic = config.critic
    if critic is not None and critic.path is not None:
        path = folders.get(critic.path, critic.path)
        critic = critic.model_copy(update={"path": path})
    return replace(run, config=config.model_copy(update={"models": models, "critic": critic}))
