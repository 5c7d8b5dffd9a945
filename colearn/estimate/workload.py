"""Reads the task of a run, with the task's default data in place of data that are not here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from colearn.config import Config, build_task
from colearn.contract import DecPOMDP
from colearn.contract.checked_task import CheckedTask
from colearn.errors import DataNotHere, MissingExtra

_DATA = ("data", "test_data", "corpus", "encoder")
"""Task settings that name data, or models that read the data."""


@dataclass(frozen=True, slots=True)
class Workload:
    """A run's task and its items."""

    task: DecPOMDP[Any, Any]
    train: Sequence[Any]
    held_out: Sequence[Any]
    notes: Mapping[str, str]
    """Replacement for each data set that is not on this machine. The keys are config fields."""


def read_workload(config: Config) -> Workload:
    """Read the task. If data from a hub are missing, the task's default data are used.

    Errors: ConfigError or TaskError, as in the run.
    """
    notes: dict[str, str] = {}
    try:
        task = build_task(config)
        train = CheckedTask(task).items("train")
    except (DataNotHere, MissingExtra) as error:
        if "data" not in config.task.settings:
            raise
        reason = str(error).removeprefix("task.data: ")
        notes["task.data"] = (
            f"not on this machine; lengths are those of the default data ({reason})"
        )
        settings = {key: value for key, value in config.task.settings.items() if key not in _DATA}
        chosen = type(config.task)(name=config.task.name, **settings)
        task = build_task(config.model_copy(update={"task": chosen}))
        train = CheckedTask(task).items("train")
    held_out = CheckedTask(task).items(config.evaluation.split)
    return Workload(task, train, held_out, notes)
