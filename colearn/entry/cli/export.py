"""`colearn export`: writes each agent of a run to a folder."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from colearn.errors import ConfigError

from .options import place, read_step


class Dtype(StrEnum):
    float32 = "float32"
    bfloat16 = "bfloat16"
    float16 = "float16"


def export(
    run: Annotated[Path, typer.Argument(help="A run's folder.")],
    to: Annotated[
        Path,
        typer.Option("--to", callback=place, help="Folder that gets one folder per agent."),
    ],
    step: Annotated[
        str, typer.Option(help="Checkpoint: last, best (by evaluation return) or an iteration.")
    ] = "last",
    adapter: Annotated[
        bool, typer.Option("--adapter", help="A LoRA adapter that names its base; not merged.")
    ] = False,
    dtype: Annotated[
        Dtype | None,
        typer.Option(
            help="Of merged weights; default: the run's compute type, if it keeps the change."
        ),
    ] = None,
    critics: Annotated[
        bool, typer.Option("--critics", help="The run's critics, one folder each, not its agents.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace agents exported there before.")
    ] = False,
) -> None:
    """Write each agent of a run to a folder that transformers, vLLM, peft and `colearn serve` can
    load. With --critics, write each critic to a folder that transformers, `critic.from` and
    `colearn.load_critic` can load."""
    from colearn.deploy.export import export_critics, export_run

    chosen: dict[str, Any] = {
        "step": read_step(step),
        "dtype": None if dtype is None else dtype.value,
        "overwrite": overwrite,
    }
    if critics and adapter:
        raise ConfigError("--adapter: critics are exported with all weights; leave it out")
    folders = (
        export_critics(run, to, **chosen)
        if critics
        else export_run(run, to, adapter=adapter, **chosen)
    )
    for label, folder in folders.items():
        size = sum(path.stat().st_size for path in folder.iterdir())
        print(f"{label}: {folder} ({size / 1e6:.1f} MB)")
