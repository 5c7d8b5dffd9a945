"""`colearn evaluate`: evaluates the agents of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from .options import Sets, checkpoint_assembly


def evaluate(
    run: Annotated[Path, typer.Argument(help="A run's folder.")],
    step: Annotated[
        str, typer.Option(help="Checkpoint: last, best (by the headline metric) or an iteration.")
    ] = "last",
    sets: Sets = [],  # noqa: B006 - typer reads the default, nobody changes it
) -> None:
    """Evaluate a checkpoint of a run; accepts settings such as --set evaluation.split=train."""
    parts, checkpoint = checkpoint_assembly(run, step, sets)

    from colearn.experiment.evaluation.evaluate import evaluate_weights

    metrics = evaluate_weights(
        parts, {key: checkpoint.path / str(key) for key in parts.host.learners}
    )
    print(json.dumps({"checkpoint": str(checkpoint.path), **metrics}, indent=1))
