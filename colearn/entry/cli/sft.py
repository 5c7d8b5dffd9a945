"""`colearn sft`: fine-tunes a team's models on dialogues before a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import ConfigName, Out, Sets


def sft(
    config: ConfigName,
    data: Annotated[Path, typer.Option("--data", help="Dialogues: .jsonl of agent and messages.")],
    out: Out = Path("taught"),
    epochs: Annotated[float, typer.Option(min=0.0, help="Passes over the dialogues.")] = 1.0,
    learning_rate: Annotated[float, typer.Option(min=0.0, help="Of AdamW, falling to 0.")] = 2e-5,
    batch: Annotated[int, typer.Option(min=1, help="Dialogues per step.")] = 8,
    sets: Sets = [],  # noqa: B006 - typer reads the default, nobody changes it
) -> None:
    """Fine-tune each agent's model on its dialogues with TRL's SFTTrainer. A run can start from the
    resulting folders."""
    from colearn.config import load_config
    from colearn.training.learners.sft import fine_tune

    settings = load_config(config, sets)
    folders = fine_tune(
        settings, data, out, epochs=epochs, learning_rate=learning_rate, batch=batch
    )
    for name, folder in folders.items():
        print(f"models.{name}.path: {folder}")
