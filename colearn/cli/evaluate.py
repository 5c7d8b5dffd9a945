"""`colearn evaluate`: play a finished run's agents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from .options import Sets


def evaluate(
    run: Annotated[Path, typer.Argument(help="A run's folder.")],
    sets: Sets = [],  # noqa: B006 - typer reads the default, nobody changes it
) -> None:
    """Evaluate the newest checkpoint of a run; --set evaluation.split=train and the like apply."""
    from colearn.config import load_config
    from colearn.errors import CheckpointError

    config_file = run / "config.yaml"
    if not config_file.is_file():
        raise CheckpointError(f"{run}: no run here (no config.yaml); give a run's folder")
    config = load_config(config_file, sets)

    from colearn.experiment.assemble import assemble
    from colearn.experiment.checkpoint import list_checkpoints, load_checkpoint
    from colearn.experiment.evaluate import evaluate_team
    from colearn.experiment.processes import Processes
    from colearn.models.load import resolve_device

    found = list_checkpoints(run / "checkpoints")
    if not found:
        raise CheckpointError(f"{run}: no checkpoint yet; let the run reach one")
    parts = assemble(config)
    load_checkpoint(found[-1], parts.learners)
    for generator in parts.generators:
        generator.sync()
    result = evaluate_team(
        parts.task,
        parts.players,
        parts.config.evaluation,
        seed=parts.config.run.seed,
        processes=Processes(resolve_device(parts.config.run.device)),
    )
    print(json.dumps({"checkpoint": str(found[-1]), **result.metrics}, indent=1))
