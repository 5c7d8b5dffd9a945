"""`colearn evaluate`: evaluates the agents of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from .options import Sets, checkpoint_team


def evaluate(
    run: Annotated[Path, typer.Argument(help="A run's folder.")],
    step: Annotated[
        str, typer.Option(help="Checkpoint: last, best (by the headline metric) or an iteration.")
    ] = "last",
    sets: Sets = [],  # noqa: B006 - typer reads the default, nobody changes it
) -> None:
    """Evaluate a checkpoint of a run; accepts settings such as --set evaluation.split=train."""
    team, checkpoint = checkpoint_team(run, step, sets)

    from colearn.training.evaluation.evaluate import evaluate_weights

    metrics = evaluate_weights(team, {key: checkpoint.path / str(key) for key in team.learners})
    print(json.dumps({"checkpoint": str(checkpoint.path), **metrics}, indent=1))
