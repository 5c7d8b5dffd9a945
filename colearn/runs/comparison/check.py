"""Checks task items, devices and models before the first run of a comparison starts."""

from __future__ import annotations

import json
from collections.abc import Iterable

from colearn.config import ResolvedRun
from colearn.contract.checked_task import CheckedTask
from colearn.text.notes import note

from .plan import Plan


def check_plans(plans: Iterable[Plan]) -> None:
    """Check that each task's items can be read and that each model and device is available.

    Errors: ConfigError or TaskError, one line that names the key and the remedy.
    """
    checked: set[str] = set()
    for plan in plans:
        for run in plan.resolved.values():
            needs = _needs(run)
            if needs not in checked:
                checked.add(needs)
                _check(run)


def tell_large_iterations(plan: Plan, task: str = "") -> None:
    """Report on stderr the algorithms whose first iteration may exceed the budget, so that their
    runs do not end at equal environment steps. `task`: the plan's task in a suite."""
    from colearn.rollout.size import oversized

    for label, run in plan.resolved.items():
        line = oversized(
            run.task,
            CheckedTask(run.task).items("train"),
            run.parts.rollout,
            episodes=run.config.train.episodes,
            budget=run.budget,
        )
        if line is not None:
            note(f"{task}{'/' if task else ''}{label}: train.environment_steps: {line}")


def _needs(run: ResolvedRun) -> str:
    """Returns all settings that determine whether a run can start, as one string."""
    data = run.config.model_dump(mode="json", include={"task", "wrapper"})
    return json.dumps([data, run.config.evaluation.split, _devices(run), _bases(run)])


def _devices(run: ResolvedRun) -> dict[str, str]:
    """Maps each field of the config that names a device to the device's name."""
    by_network = {field: name for name, field in map(run.device, run.networks)}
    return {"run.device": run.config.run.device, **by_network}


def _bases(run: ResolvedRun) -> dict[str, str]:
    """Maps each model path to the first field of the config that names it."""
    fields: dict[str, str] = {}
    for key in run.networks:
        fields.setdefault(run.path(key), f"{key.section}.path")
    return fields


def _check(run: ResolvedRun) -> None:
    from colearn.models.embedded import embedded_recipe
    from colearn.models.embedded_recipes import is_embedded
    from colearn.models.load import check_model, resolve_device

    for split in ("train", run.config.evaluation.split):
        CheckedTask(run.task).items(split)
    for field, device in _devices(run).items():
        resolve_device(device, field)
    for path, field in _bases(run).items():
        if is_embedded(path):
            embedded_recipe(run.task, path, field)
        else:
            check_model(path, field=field)
