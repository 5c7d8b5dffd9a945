"""Workload of a run's task, computed once for all estimates: texts, trees and updates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from colearn.config import Config, ResolvedRun, build_task
from colearn.contract import DecPOMDP
from colearn.contract.checked_task import CheckedTask
from colearn.contract.types import Tree
from colearn.errors import DataNotHere, MissingExtra, TaskError
from colearn.rollout.agents import AgentSpec

from .architecture import Architectures
from .script import Readings, Script, read_script, rehearse
from .work import Updates, plan_updates

_DATA = ("data", "test_data", "corpus", "encoder")
"""Task settings that name data, or models that read the data."""
_PROBES = 4
"""Number of items from which lengths of observations are read, besides the longest."""


@dataclass
class Workload:
    """The part of a run's work that does not depend on placement, number of processes or number of
    concurrent episodes."""

    task: DecPOMDP[Any, Any]
    train: Sequence[Any]
    held_out: Sequence[Any]
    missing: Mapping[str, str]
    """Replacement for each data set that is not on this machine. The keys are config fields."""
    architectures: Architectures
    _trees: list[Tree[Any]] = field(default_factory=list)

    @cached_property
    def scripts(self) -> list[Script]:
        """Scripts of the first training items. Errors: TaskError if no agent acts in any of these
        items."""
        return _scripts(self.task, self.train)

    @cached_property
    def held_out_scripts(self) -> list[Script]:
        """Scripts of the first evaluation items. Errors: TaskError if no agent acts in any of these
        items."""
        return _scripts(self.task, self.held_out)

    def grow(self, run: ResolvedRun, specs: Mapping[str, AgentSpec]) -> None:
        """Grow the trees of an iteration; later calls have no effect."""
        if self._trees:
            return
        readings: Readings = {}
        for number in range(run.config.train.episodes):
            script = self.scripts[number % len(self.scripts)]
            self._trees += rehearse(number, script, run.parts.rollout, specs, readings).trees

    def updates(self, run: ResolvedRun) -> Updates | None:
        """Plan the updates on the grown trees. Errors: as for `plan_updates`."""
        return plan_updates(run, self._trees, self.architectures)


def read_workload(config: Config) -> Workload:
    """Read the task. If data from a hub are missing, the task's default data are used.

    Errors: ConfigError or TaskError, as in the run.
    """
    missing: dict[str, str] = {}
    try:
        task = build_task(config)
        train = CheckedTask(task).items("train")
    except (DataNotHere, MissingExtra) as error:
        if "data" not in config.task.settings:
            raise
        reason = str(error).removeprefix("task.data: ")
        missing["task.data"] = (
            f"not on this machine; lengths are those of the default data ({reason})"
        )
        settings = {key: value for key, value in config.task.settings.items() if key not in _DATA}
        chosen = type(config.task)(name=config.task.name, **settings)
        task = build_task(config.model_copy(update={"task": chosen}))
        train = CheckedTask(task).items("train")
    held_out = CheckedTask(task).items(config.evaluation.split)
    return Workload(task, train, held_out, missing, Architectures(task, config))


def _longest(task: DecPOMDP[Any, Any], items: Sequence[Any]) -> Any:
    """Return the first item with the largest number of turns. The search stops at the first item
    with `task.horizon` turns, because reading further items can be slow: some tasks generate items
    on demand."""
    longest, turns = items[0], 0
    for item in items:
        its_turns = CheckedTask(task).horizon_of(item)
        if its_turns > turns:
            longest, turns = item, its_turns
        if turns == task.horizon:
            break
    return longest


def _scripts(task: DecPOMDP[Any, Any], items: Sequence[Any]) -> list[Script]:
    probes = list(items[:_PROBES])
    longest, turns = _longest(task, items), CheckedTask(task).horizon_of
    if turns(longest) > max(map(turns, probes)):
        probes.append(longest)
    scripts = [read_script(task, item, number) for number, item in enumerate(probes)]
    if not any(scripts):
        raise TaskError(
            f"task.observe: no agent acts in the first {len(scripts)} items, so there is nothing "
            "to learn; return an observation at turn 0"
        )
    return scripts
