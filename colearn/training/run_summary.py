"""Writes run.json: models, settings, progress and results of a run."""

from __future__ import annotations

import re
import resource
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import torch

import colearn
from colearn.contract.checked_task import CheckedTask
from colearn.contract.task_results import validate_costs
from colearn.methods.values.given import critic_joint_actions
from colearn.runs.record import Progress, RunRecord, RunWriter

from .metric_ranges import metric_ranges
from .team import Team

RunStatus = Literal["running", "interrupted", "finished"]


class RunSummary:
    """The content of run.json, updated during the run."""

    def __init__(self, writer: RunWriter, team: Team, *, resumed: bool) -> None:
        self.writer, self.team = writer, team
        # a run that ended between its config and its first record has neither record nor checkpoint
        begun = resumed and (writer.folder.recorded or writer.folder.checkpoints.all())
        self._earlier_costs = writer.folder.record().costs if begun else {}
        self.critic_joint_actions = critic_joint_actions(team.run, 0)
        self.elsewhere: Mapping[str, float] = {}
        """Costs of the task's services in worker processes."""
        self._started = datetime.now(UTC).isoformat(timespec="seconds")

    def write(
        self, status: RunStatus, progress: Progress, *, stopped: str | None = None
    ) -> RunRecord:
        """Write run.json; returns its content."""
        config, task = self.team.run.config, self.team.run.task
        evaluations = self.writer.folder.evaluations()
        record = RunRecord(
            status=status,
            stopped=stopped,
            algorithm=config.algorithm.name,
            task=config.task.name,
            seed=config.run.seed,
            agents=tuple(task.agents),
            models={name: model.path for name, model in config.models.items()},
            parameters=self._trained_parameters(),
            version=colearn.__version__,
            started=self._started,
            wall_seconds=progress.wall_seconds,
            peak_memory_bytes=peak_memory(),
            iterations=progress.iteration,
            rollouts=progress.episodes,
            environment_steps=progress.environment_steps,
            joint_actions=progress.environment_steps,
            critic_joint_actions=self.critic_joint_actions,
            generations=progress.generations,
            generated_tokens=progress.generated_tokens,
            updates=progress.updates,
            changes=tuple(progress.changes),
            optimum=task.optimum,
            ranges=metric_ranges(task, config.task.name, evaluations[-1].metrics)
            if evaluations
            else {},
            headline=self.team.run.headline,
            best=progress.best,
            costs=self._costs(),
            first=evaluations[0].metrics if evaluations else {},
            last=evaluations[-1].metrics if evaluations else {},
        )
        self.writer.run(record)
        return record

    def _trained_parameters(self) -> dict[str, int]:
        """Number of trained parameters of each actor's model and of each critic."""
        return {
            key.model if key.kind == "actor" else str(key): learner.size
            for key, learner in self.team.learners.items()
        }

    def _costs(self) -> dict[str, float]:
        """Costs of the task's services in this process and, after a resume, also in earlier
        processes.

        Errors: TaskError for a total that is not a finite number.
        """
        costs = CheckedTask(self.team.run.task).costs()
        parts = (self._earlier_costs, costs, validate_costs(self.elsewhere))
        names = dict.fromkeys(name for part in parts for name in part)
        return {name: sum(part.get(name, 0.0) for part in parts) for name in names}


def peak_memory() -> int:
    """Returns the peak memory of the accelerator or, if no accelerator is used, of this process, in
    bytes."""
    if torch.accelerator.is_available():
        return int(torch.accelerator.max_memory_allocated())
    if sys.platform == "linux":  # there `ru_maxrss` begins at the peak of the starting process
        status = Path("/proc/self/status").read_text(encoding="utf-8")
        return 1024 * int(re.findall(r"^VmHWM:\s+(\d+) kB$", status, re.M)[0])
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
