"""A run's folder as the export reads it: config, agents, one checkpoint, what was measured."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from colearn.comparison.runs import read_record
from colearn.comparison.source import RECORD
from colearn.config import Config, bind_agents, build_algorithm, build_task, load_config
from colearn.errors import CheckpointError
from colearn.experiment.checkpoint import PROGRESS, Progress, list_checkpoints
from colearn.models.embedded import EMBEDDED, embedded_model


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """A run and one of its checkpoints."""

    folder: Path
    config: Config
    """With every agent and model spelled out; paths as the run was given them. Where the algorithm
    learns nothing, no model is trained."""
    record: dict[str, Any]
    """run.json."""
    checkpoint: Path
    progress: Progress
    """At the checkpoint."""
    paths: dict[str, str]
    """By physical model: the folder or hub name that its tokenizer and base weights come from."""

    @property
    def agents(self) -> list[str]:
        return list(self.config.agents)


def read_trained(folder: Path, step: int | None = None) -> Trained:
    """A run at the checkpoint of iteration `step`, or at the newest.

    Errors: CheckpointError for a folder that holds no run, a comparison, or no such checkpoint.
    """
    if (folder / RECORD).is_file():
        runs = sorted(path.parent.name for path in (folder / "runs").glob("*/run.json"))
        raise CheckpointError(
            f"{folder}: holds a comparison; give one of its runs under {folder / 'runs'}: "
            + (", ".join(runs) or "none has started yet")
        )
    if not (folder / "config.yaml").is_file():
        raise CheckpointError(f"{folder}: no run here (no config.yaml); give a run's folder")
    record = read_record(folder)
    checkpoint = _checkpoint(folder, step)
    path = checkpoint / PROGRESS
    try:
        progress = Progress(**json.loads(path.read_text(encoding="utf-8")))
        agents = list(record["agents"])
    except (OSError, ValueError, TypeError):
        raise CheckpointError(f"{path}: missing or cut short; take another --step") from None
    except KeyError as error:
        raise CheckpointError(f"{folder / 'run.json'}: lacks {error}; run it again") from None
    config = bind_agents(load_config(folder / "config.yaml"), agents)
    if not build_algorithm(config).learns:
        config = _untrained(config)
    return Trained(
        folder=folder,
        config=config,
        record=record,
        checkpoint=checkpoint,
        progress=progress,
        paths=_paths(config),
    )


def _checkpoint(folder: Path, step: int | None) -> Path:
    found = list_checkpoints(folder / "checkpoints")
    if not found:
        raise CheckpointError(f"{folder}: no checkpoint yet; let the run reach one")
    if step is None:
        return found[-1]
    for path in found:
        if path.name == f"step-{step}":
            return path
    kept = ", ".join(path.name.removeprefix("step-") for path in found)
    raise CheckpointError(f"--step {step}: the run keeps no such checkpoint; it has: {kept}")


def _untrained(config: Config) -> Config:
    """The config with every model as it is, which is how the algorithm played it."""
    as_it_is = {"trained": False, "lora": None}
    models = {name: model.model_copy(update=as_it_is) for name, model in config.models.items()}
    return config.model_copy(update={"models": models})


def _paths(config: Config) -> dict[str, str]:
    made: dict[str, str] = {}
    for name, model in config.models.items():
        made[name] = model.path
        if model.path.startswith(EMBEDDED):
            field = f"models.{name}.path"
            made[name] = str(embedded_model(build_task(config), model.path, field))
    return made
