"""What lies in a comparison's folder: what was to be compared, what is finished, what is not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import colearn
from colearn.errors import CheckpointError, ConfigError
from colearn.record import (
    ComparisonEntry,
    ComparisonFolder,
    ComparisonRecord,
    Run,
    RunFolder,
    Status,
    first_difference,
    read_run,
)
from colearn.record.difference import told_difference

from .plan import Plan
from .settings import Setting, settings_table


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What was compared, on what, and by which command."""

    task: str
    task_settings: dict[str, Any]
    algorithms: dict[str, dict[str, Any]]
    """Settings in the config that are the algorithm's own, its `name` among them, by label."""
    seeds: list[int]
    models: dict[str, str]
    parameters: dict[str, int]
    agents: list[str]
    critic: str | None
    environment_steps: int | None
    """The budget of each run, in joint actions; None where runs have different ones."""
    evaluation: dict[str, Any]
    settings: list[Setting]
    """All of them, by algorithm."""
    versions: list[str]
    command: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A planned run that is not in the report."""

    run: str
    status: Status
    environment_steps: int
    """How many it has made so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    folder: Path
    compared: Compared
    runs: tuple[Run, ...]
    missing: tuple[Missing, ...] = field(default=())


def check_claim(plan: Plan, out: Path) -> None:
    """Errors: CheckpointError if `out` holds another comparison or a single run, naming the first
    setting that differs; ConfigError for a shorter budget than that of its runs."""
    remedy = "give another --out or delete the folder"
    folder = ComparisonFolder(out)
    if RunFolder(out).status != "not started":
        raise CheckpointError(f"{out} holds a single run, not a comparison; {remedy}")
    if not folder.exists():
        if folder.found():
            raise CheckpointError(f"{out} holds runs that no comparison here made; {remedy}")
        return
    if folder.record().digest != plan.digest:
        what = _first_difference(plan, folder)
        raise CheckpointError(f"{out} holds another comparison ({what}); {remedy}")
    for run in plan.runs:
        made = run.folder(out).environment_steps()
        before = folder.settings(run.name).get("train", {}).get("environment_steps", 0)
        if run.budget and run.budget < min(made, before):
            raise ConfigError(
                f"train.environment_steps: {run.budget} is less than the {before} of {run.name} in "
                f"{out}; give at least as many or another --out"
            )


def _first_difference(plan: Plan, folder: ComparisonFolder) -> str:
    known = folder.record().algorithms
    if set(known) != set(plan.algorithms):
        return f"its algorithms are {', '.join(known)}"
    for run in plan.runs:
        there, here = folder.settings(run.name), run.config.model_dump(mode="json")
        key = first_difference(there, here) if there else None
        if key is not None:
            return f"first difference: {run.algorithm}'s {told_difference(key, there, here)}"
    return "other settings"


def claim(plan: Plan, out: Path, command: str | None) -> None:
    """Make `out` the folder of this comparison; more seeds and more steps extend it.

    Errors: as `check_claim`.
    """
    check_claim(plan, out)
    folder = ComparisonFolder(out)
    planned = [
        ComparisonEntry(run=run.name, algorithm=run.algorithm, seed=run.seed) for run in plan.runs
    ]
    if folder.exists():
        earlier = folder.record()
        old = [entry for entry in earlier.runs if entry not in planned]
        planned = sorted([*old, *planned], key=lambda entry: entry.seed)
        command = command or earlier.command
    folder.write(
        ComparisonRecord(
            digest=plan.digest,
            version=colearn.__version__,
            command=command,
            algorithms=plan.algorithms,
            runs=tuple(planned),
        )
    )


def read_source(path: Path) -> Source:
    """The finished runs of a comparison, of a folder of runs, or one run alone.

    Errors: CheckpointError if nothing there is finished, or a file cannot be read.
    """
    folder = ComparisonFolder(path)
    record = folder.record() if folder.exists() else None
    planned: Sequence[tuple[str | None, RunFolder]]
    if record is not None:
        planned = folder.planned()
    elif RunFolder(path).status != "not started":
        planned = [(None, RunFolder(path))]
    else:
        planned = folder.found()
    runs, missing = [], []
    for label, run in planned:
        status = run.status
        if status == "finished":
            runs.append(read_run(run, label))
        else:
            steps = run.environment_steps()
            missing.append(Missing(run=run.name, status=status, environment_steps=steps))
    if not runs:
        raise CheckpointError(
            f"{path}: no finished run to report; make some with: colearn compare CONFIG --out DIR"
        )
    compared = _compared(runs, record)
    return Source(folder=path, compared=compared, runs=tuple(runs), missing=tuple(missing))


def _compared(runs: Sequence[Run], record: ComparisonRecord | None) -> Compared:
    read = [(run.algorithm, run.folder.settings()) for run in runs]
    configs = dict(read)
    budgets = {config.get("train", {}).get("environment_steps") for _, config in read}
    planned = () if record is None else record.algorithms
    order = [label for label in planned if label in configs]
    order += [label for label in configs if label not in order]
    config = configs[order[0]]
    task = dict(config.get("task", {}))
    critic = config.get("critic") or {}
    return Compared(
        task=str(task.pop("name", runs[0].record.task)),
        task_settings={**task, **({"wrapper": w} if (w := config.get("wrapper")) else {})},
        algorithms={label: dict(configs[label].get("algorithm", {})) for label in order},
        seeds=_different(run.seed for run in runs),
        models=_merged(run.record.models for run in runs),
        parameters=_merged(run.record.parameters for run in runs),
        agents=_different(agent for run in runs for agent in run.record.agents),
        critic=critic.get("path") or critic.get("share"),
        environment_steps=budgets.pop() if len(budgets) == 1 else None,
        evaluation=dict(config.get("evaluation", {})),
        settings=settings_table(configs[label] for label in order),
        versions=_different(run.record.version for run in runs),
        command=None if record is None else record.command,
    )


def _merged(found: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    return {name: value for one in found for name, value in one.items()}


def _different(values: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(values))
