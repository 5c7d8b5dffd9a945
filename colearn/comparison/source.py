"""What lies in a comparison's folder: what was to be compared, what is finished, what is not."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

import colearn
from colearn.errors import CheckpointError

from .plan import Plan
from .runs import Run, Status, read_lines, read_object, read_run, run_status

RECORD = "compare.json"


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
    """The budget of each run, in joint actions."""
    evaluation: dict[str, Any]
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


def claim(plan: Plan, out: Path, command: str | None) -> None:
    """Make `out` the folder of this comparison, or check that it is; more seeds extend it.

    Errors: CheckpointError if it holds another comparison or a single run.
    """
    remedy = "give another --out or delete the folder"
    if (out / "run.json").exists():
        raise CheckpointError(f"{out} holds a single run, not a comparison; {remedy}")
    planned: list[dict[str, Any]] = [
        {"run": run.name, "algorithm": run.algorithm, "seed": run.seed} for run in plan.runs
    ]
    if (out / RECORD).exists():
        earlier = read_object(out / RECORD)
        if earlier.get("digest") != plan.digest:
            raise CheckpointError(f"{out} holds another comparison (other settings); {remedy}")
        old = [run for run in earlier.get("runs", []) if run not in planned]
        planned = sorted([*old, *planned], key=lambda run: int(run["seed"]))
        command = command or earlier.get("command")
    elif (out / "runs").exists():
        raise CheckpointError(f"{out} holds runs that no comparison here made; {remedy}")
    out.mkdir(parents=True, exist_ok=True)
    record = {
        "digest": plan.digest,
        "version": colearn.__version__,
        "command": command,
        "algorithms": list(plan.algorithms),
        "runs": planned,
    }
    (out / RECORD).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def read_source(folder: Path) -> Source:
    """The finished runs of a comparison, of a folder of runs, or one run alone.

    Errors: CheckpointError if nothing there is finished, or a file cannot be read.
    """
    record, planned = _planned(folder)
    runs, missing = [], []
    for label, path in planned:
        status = run_status(path)
        if status == "finished":
            runs.append(read_run(path, label))
        else:
            missing.append(
                Missing(run=path.name, status=status, environment_steps=_steps_made(path))
            )
    if not runs:
        raise CheckpointError(
            f"{folder}: no finished run to report; make some with: colearn compare CONFIG --out DIR"
        )
    compared = _compared(runs, record)
    return Source(folder=folder, compared=compared, runs=tuple(runs), missing=tuple(missing))


def _planned(folder: Path) -> tuple[dict[str, Any], list[tuple[str | None, Path]]]:
    if (folder / RECORD).is_file():
        record = read_object(folder / RECORD)
        try:
            return record, [
                (str(run["algorithm"]), folder / "runs" / str(run["run"])) for run in record["runs"]
            ]
        except KeyError as error:
            raise CheckpointError(f"{folder / RECORD}: lacks {error}; delete the file") from None
    if (folder / "run.json").is_file():
        return {}, [(None, folder)]
    # without a plan the folder's name tells variants of one algorithm apart
    found = sorted(path.parent for path in (folder / "runs").glob("*/run.json"))
    return {}, [(path.name.rpartition("-s")[0] or None, path) for path in found]


def _compared(runs: Sequence[Run], record: dict[str, Any]) -> Compared:
    configs = {run.algorithm: _config(run.folder) for run in runs}
    order = [label for label in record.get("algorithms", ()) if label in configs]
    order += [label for label in configs if label not in order]
    config = configs[order[0]]
    task = dict(config.get("task", {}))
    critic = config.get("critic") or {}
    return Compared(
        task=str(task.pop("name", runs[0].record.get("task"))),
        task_settings={**task, **({"wrapper": w} if (w := config.get("wrapper")) else {})},
        algorithms={label: dict(configs[label].get("algorithm", {})) for label in order},
        seeds=_different(run.seed for run in runs),
        models=_merged(runs, "models"),
        parameters=_merged(runs, "parameters"),
        agents=_different(agent for run in runs for agent in run.record.get("agents", ())),
        critic=critic.get("path") or critic.get("share"),
        environment_steps=config.get("train", {}).get("environment_steps"),
        evaluation=dict(config.get("evaluation", {})),
        versions=_different(str(run.record.get("version")) for run in runs),
        command=record.get("command"),
    )


def _config(folder: Path) -> dict[str, Any]:
    path = folder / "config.yaml"
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CheckpointError(f"{path}: no such file; run it again") from None
    except yaml.YAMLError as error:
        raise CheckpointError(f"{path}: not YAML ({' '.join(str(error).split())})") from None
    if not isinstance(data, dict):
        raise CheckpointError(f"{path}: must hold a mapping")
    return data


def _steps_made(folder: Path) -> int:
    steps = [int(line.get("environment_steps", 0)) for line in read_lines(folder / "metrics.jsonl")]
    return max(steps, default=0)


def _merged(runs: Sequence[Run], key: str) -> dict[str, Any]:
    return {name: value for run in runs for name, value in run.record.get(key, {}).items()}


def _different(values: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(values))
