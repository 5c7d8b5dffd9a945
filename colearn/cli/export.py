"""`colearn export`: the agents of a run, each as a folder of its own."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Dtype(StrEnum):
    float32 = "float32"
    bfloat16 = "bfloat16"
    float16 = "float16"


def export(
    run: Annotated[Path, typer.Argument(help="A run's folder.")],
    to: Annotated[Path, typer.Option("--to", help="Folder that gets one folder per agent.")],
    step: Annotated[
        str, typer.Option(help="Checkpoint: last, best (by evaluation return) or an iteration.")
    ] = "last",
    adapter: Annotated[
        bool, typer.Option("--adapter", help="A LoRA adapter that names its base; not merged.")
    ] = False,
    dtype: Annotated[
        Dtype | None, typer.Option(help="Of merged weights; default: the run's compute type.")
    ] = None,
    comparison: Annotated[
        Path | None,
        typer.Option(help="Comparison whose seeds give the card's intervals; default: the run's."),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace agents exported there before.")
    ] = False,
) -> None:
    """Write each agent of a run as a folder for transformers, vLLM, peft and `colearn serve`."""
    from colearn.export import export_run

    from .options import read_step

    folders = export_run(
        run,
        to,
        adapter=adapter,
        step=read_step(step),
        dtype=None if dtype is None else dtype.value,
        comparison=comparison,
        overwrite=overwrite,
    )
    for agent, folder in folders.items():
        size = sum(path.stat().st_size for path in folder.iterdir())
        print(f"{agent}: {folder} ({size / 1e6:.1f} MB)")
