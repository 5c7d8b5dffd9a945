"""Where the bases of a run come from, once the embedded models that it names are made."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from colearn.config import ResolvedRun
from colearn.contract import NetworkKey

from .embedded import EMBEDDED, embedded_model


def base_folders(run: ResolvedRun, keys: Iterable[NetworkKey]) -> dict[str, str]:
    """By the path in the config, the folder or hub name of each base of these networks.

    An embedded model is made for the run's task. Errors: ConfigError naming the field.
    """
    found: dict[str, str] = {}
    for key in keys:
        path = run.path(key)
        if path not in found:
            made = path.startswith(EMBEDDED)
            field = f"{key.section}.path"
            found[path] = str(embedded_model(run.task, path, field)) if made else path
    return found


def with_folders(run: ResolvedRun) -> ResolvedRun:
    """The run with the folder of each embedded model in place of its name. Errors: as above."""
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
