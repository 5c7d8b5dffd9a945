"""Reads a comparison folder: planned, finished and pending runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from colearn.contract import Headline
from colearn.errors import CheckpointError
from colearn.models.embedded_recipes import is_embedded
from colearn.models.sources import first_change
from colearn.registry.given import PREFIX
from colearn.runs.record import ComparisonFolder, ComparisonRecord, Run, RunFolder, Status, read_run
from colearn.runs.record.difference import value_at
from colearn.runs.record.writer import resume_command
from colearn.text.masking import masked, masked_settings

from .settings import Setting, settings_table


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """The compared algorithms, their task and models, and the command."""

    task: str
    task_settings: dict[str, Any]
    algorithms: dict[str, dict[str, Any]]
    """Settings of the config's `algorithm` section, including `name`. The keys are the labels."""
    seeds: list[int]
    models: dict[str, str]
    parameters: dict[str, int]
    agents: list[str]
    critic: str | None
    environment_steps: int | None
    """Budget of each run in joint actions; None if the runs' budgets differ."""
    headline: Headline
    """The metric by which runs are ranked; `return` if the runs' configs name different metrics."""
    evaluation: dict[str, Any]
    settings: list[Setting]
    """All resolved settings of each algorithm."""
    versions: list[str]
    command: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A planned run that is not in the report."""

    run: str
    status: Status
    environment_steps: int
    """Joint actions made so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    folder: Path
    compared: Compared
    runs: tuple[Run, ...]
    missing: tuple[Missing, ...] = field(default=())
    changes: tuple[str, ...] = ()
    """Files that changed while the runs were made, as `field: file`."""


def read_source(path: Path, *, running: bool = False) -> Source:
    """Returns the finished runs of a comparison, or a single run. running: whether to include
    unfinished runs that have an evaluation.

    Errors: CheckpointError if no run is finished, or a file cannot be read.
    """
    folder = ComparisonFolder(path)
    record = folder.record() if folder.exists() else None
    planned: Sequence[tuple[str | None, RunFolder]] = [(None, RunFolder(path))]
    if record is not None:
        planned = folder.planned()
    runs, missing = [], []
    for label, run in planned:
        status = run.status
        if status == "finished" or (running and run.evaluations()):
            runs.append(read_run(run, label))
        else:
            steps = run.environment_steps()
            missing.append(Missing(run=run.name, status=status, environment_steps=steps))
    if not runs:
        if record is None and RunFolder(path).status == "unfinished":
            raise CheckpointError(
                f"{path}: the run has not finished; wait for its end, or continue it if it was "
                f"interrupted: {resume_command(path)}"
            )
        raise CheckpointError(
            f"{path}: no finished run to report; make some with: colearn compare CONFIG --out DIR"
        )
    compared = _compared(runs, record)
    return Source(
        folder=path,
        compared=compared,
        runs=tuple(runs),
        missing=tuple(missing),
        changes=changes_between(runs, () if record is None else record.changes),
    )


def changes_between(runs: Sequence[Run], known: Iterable[str]) -> tuple[str, ...]:
    """Returns the files that changed between runs with the same setting, and within runs. An
    embedded model is made for one task, so its files are compared between runs of that task."""
    changes = dict.fromkeys((*known, *(line for run in runs for line in run.record.changes)))
    first: dict[tuple[str, ...], Mapping[str, str]] = {}
    for run in runs:
        checkpoints, settings = run.folder.checkpoints.all(), run.folder.settings()
        for name, files in (checkpoints[-1].sources if checkpoints else {}).items():
            value = str(value_at(settings, name))
            task = (settings.get("task"), settings.get("wrapper")) if is_embedded(value) else ()
            earlier = first.setdefault((name, value, str(task)), files)
            changed = first_change(*_comparable(earlier, files))
            if changed is not None:
                changes[f"{name}: {changed}"] = None
    return tuple(changes)


def _comparable(*runs: Mapping[str, str]) -> list[dict[str, str]]:
    """The digests of two runs without the weights that one of them lacks, because not all
    algorithms keep all weights."""
    names = runs[0].keys() ^ runs[1].keys()
    lacking = {name for name in names if name.endswith(".safetensors")}
    return [{name: run[name] for name in run.keys() - lacking} for run in runs]


def _compared(runs: Sequence[Run], record: ComparisonRecord | None) -> Compared:
    labelled = [(run.algorithm, masked_settings(run.folder.settings())) for run in runs]
    configs = dict(labelled)
    budgets = {config.get("train", {}).get("environment_steps") for _, config in labelled}
    judged = {run.record.headline for run in runs}
    planned = () if record is None else record.algorithms
    order = [label for label in planned if label in configs]
    order += [label for label in configs if label not in order]
    config = configs[order[0]]
    task = dict(config.get("task", {}))
    critic = config.get("critic") or {}
    return Compared(
        task=str(task.pop("name", runs[0].record.task)).removeprefix(PREFIX),
        task_settings={**task, **({"wrapper": w} if (w := config.get("wrapper")) else {})},
        algorithms={label: dict(configs[label].get("algorithm", {})) for label in order},
        seeds=_different(run.seed for run in runs),
        models=_merged(run.record.models for run in runs),
        parameters=_merged(run.record.parameters for run in runs),
        agents=_different(agent for run in runs for agent in run.record.agents),
        critic=critic.get("path") or critic.get("share"),
        environment_steps=budgets.pop() if len(budgets) == 1 else None,
        headline=judged.pop() if len(judged) == 1 else Headline(),
        evaluation=dict(config.get("evaluation", {})),
        settings=settings_table(configs[label] for label in order),
        versions=_different(run.record.version for run in runs),
        command=None if record is None or record.command is None else masked(record.command),
    )


def _merged(mappings: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    return {name: value for mapping in mappings for name, value in mapping.items()}


def _different(values: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(values))
