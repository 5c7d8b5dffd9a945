"""Reads a run's config, agents and results and one of its checkpoints for an export."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from colearn.config import ResolvedRun, resolve
from colearn.models.folders import base_folders
from colearn.models.sources import check_sources, sources_of
from colearn.runs.record import Progress, RunFolder, RunRecord, open_run
from colearn.runs.record.checkpoints import Step
from colearn.text.masking import check_unmasked


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """A run and one of its checkpoints."""

    folder: RunFolder
    run: ResolvedRun
    """The resolved config. It contains the paths that the run was given."""
    record: RunRecord
    checkpoint: Path
    progress: Progress
    """The run's progress at the checkpoint."""
    paths: dict[str, str]
    """For each physical model, the folder or hub name of its tokenizer and base weights."""

    @property
    def agents(self) -> list[str]:
        """The agents that have a model of the run, not those that programs or endpoints play."""
        return _with_models(self.run)


def agents_with_models(folder: Path) -> list[str]:
    """Read the names of a run's agents that can be exported. Errors: CheckpointError if the folder
    contains no run."""
    run_folder = open_run(folder)
    return _with_models(resolve(run_folder.config(), agents=run_folder.record().agents))


def _with_models(run: ResolvedRun) -> list[str]:
    return [agent for agent, settings in run.config.agents.items() if settings.speaks]


def read_trained(folder: Path, step: Step = "last") -> Trained:
    """Read a run at one of its checkpoints.

    Errors: CheckpointError if the folder contains no run, a comparison, or no such checkpoint, or
    if the base models have changed since the checkpoint. ConfigError for a masked setting of an
    agent, such as a key in the agent's system prompt.
    """
    run_folder = open_run(folder)
    record = run_folder.record()
    checkpoint = run_folder.checkpoints.choose(step)
    checkpoint.say_passed()
    config = run_folder.config()
    exported = {"agents", "base", "models"}  # an endpoint's agent is not
    hidden = {"agents": {"__all__": {"endpoint"}}}
    check_unmasked(config.model_dump(mode="json", include=exported, exclude=hidden))
    run = resolve(config, agents=record.agents)
    actors = (key for key in run.networks if key.kind == "actor")
    folders = base_folders(run, actors, checkpoint.sources)
    now = sources_of(run, folders, plays=False)
    check_sources(checkpoint.path, checkpoint.sources, now)
    return Trained(
        folder=run_folder,
        run=run,
        record=record,
        checkpoint=checkpoint.path,
        progress=checkpoint.progress,
        paths={name: folders[model.path] for name, model in run.config.models.items()},
    )
