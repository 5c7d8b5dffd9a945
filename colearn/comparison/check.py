"""What every run needs, looked at once before the first one starts: task, devices and models."""

from __future__ import annotations

import json
from collections.abc import Iterable

from colearn.config import Config, bind_agents, build_algorithm, build_task, untrained_config

from .plan import Plan


def check_plans(plans: Iterable[Plan]) -> None:
    """Read each task's items and see that each model and device is here.

    Errors: ConfigError or TaskError, one line that names the key and the remedy.
    """
    seen: set[str] = set()
    for plan in plans:
        for config in {run.algorithm: run.config for run in plan.runs}.values():
            needs = _needs(config)
            if needs not in seen:
                seen.add(needs)
                _check(config)


def _needs(config: Config) -> str:
    """What decides whether a config's runs can start."""
    data = config.model_dump(mode="json", include={"task", "wrapper", "models", "agents", "critic"})
    split, device = config.evaluation.split, config.run.device
    return json.dumps([data, split, device, config.algorithm.name], sort_keys=True)


def _check(config: Config) -> None:
    from colearn.models.embedded import EMBEDDED, embedded_recipe
    from colearn.models.load import check_model, resolve_device
    from colearn.rollout.transition import items_of

    task = build_task(config)
    for split in ("train", config.evaluation.split):
        items_of(task, split)
    config = bind_agents(config, task.agents)
    if not build_algorithm(config).learns:
        config = untrained_config(config)
    places = [("run.device", config.run.device)]
    paths: dict[str, str] = {}
    for name, model in config.models.items():
        places.append((f"models.{name}.device", model.device or "auto"))
        paths.setdefault(model.path, f"models.{name}.path")
    if config.critic is not None:
        places.append(("critic.device", config.critic.device or "auto"))
        if config.critic.path is not None:
            paths.setdefault(config.critic.path, "critic.path")
    for field, device in places:
        resolve_device(device, field)
    for path, field in paths.items():
        if path.startswith(EMBEDDED):
            embedded_recipe(task, path, field)
        else:
            check_model(path, field=field)
