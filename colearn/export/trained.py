"""A run's folder as the export reads it: config, agents, one checkpoint, what was measured."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from colearn.config import Config, bind_agents, build_algorithm, build_task, untrained_config
from colearn.models.embedded import EMBEDDED, embedded_model
from colearn.record import Progress, RunFolder, RunRecord, open_run
from colearn.record.checkpoints import Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """A run and one of its checkpoints."""

    folder: RunFolder
    config: Config
    """With every agent and model spelled out; paths as the run was given them. Where the algorithm
    learns nothing, no model is trained."""
    record: RunRecord
    checkpoint: Path
    progress: Progress
    """At the checkpoint."""
    paths: dict[str, str]
    """By physical model: the folder or hub name that its tokenizer and base weights come from."""

    @property
    def agents(self) -> list[str]:
        return list(self.config.agents)


def read_trained(folder: Path, step: Step = "last") -> Trained:
    """A run at one of its checkpoints.

    Errors: CheckpointError for a folder that holds no run, a comparison, or no such checkpoint.
    """
    run = open_run(folder)
    record = run.record()
    checkpoint = run.checkpoints.choose(step)
    checkpoint.say_passed()
    config = bind_agents(run.config(), record.agents)
    if not build_algorithm(config).learns:
        config = untrained_config(config)
    return Trained(
        folder=run,
        config=config,
        record=record,
        checkpoint=checkpoint.path,
        progress=checkpoint.progress,
        paths=_paths(config),
    )


def _paths(config: Config) -> dict[str, str]:
    made: dict[str, str] = {}
    for name, model in config.models.items():
        made[name] = model.path
        if model.path.startswith(EMBEDDED):
            field = f"models.{name}.path"
            made[name] = str(embedded_model(build_task(config), model.path, field))
    return made
