"""`colearn export`: writes each agent of a run to a folder, and optionally pushes the folder to a
hub."""

from __future__ import annotations

import tempfile
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from colearn.errors import ConfigError

from .options import place


class Dtype(StrEnum):
    float32 = "float32"
    bfloat16 = "bfloat16"
    float16 = "float16"


def export(
    run: Annotated[Path, typer.Argument(help="A run's folder.")],
    to: Annotated[
        Path | None,
        typer.Option("--to", callback=place, help="Folder that gets one folder per agent."),
    ] = None,
    push: Annotated[
        str | None,
        typer.Option("--push", help="User or organisation: one hub repository per agent."),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="With --push, the team's name; default: the run's folder.")
    ] = None,
    private: Annotated[
        bool, typer.Option("--private", help="With --push: private repositories.")
    ] = False,
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
    from colearn.deploy.export import export_critics, export_run, push_agents, push_critics

    from .options import read_step

    if to is None and push is None:
        raise ConfigError("--to: name a folder, or a hub's user or organisation with --push")
    if push is None and (private or name is not None):
        raise ConfigError("--name and --private belong to --push; add it or leave them out")
    chosen: dict[str, Any] = {
        "step": read_step(step),
        "dtype": None if dtype is None else dtype.value,
        "overwrite": overwrite,
    }
    if critics and adapter:
        raise ConfigError("--adapter: critics are exported with all weights; leave it out")
    with tempfile.TemporaryDirectory() as scratch:
        folders = (
            export_critics(run, to or scratch, **chosen)
            if critics
            else export_run(run, to or scratch, adapter=adapter, **chosen)
        )
        if to is not None:
            for label, folder in folders.items():
                size = sum(path.stat().st_size for path in folder.iterdir())
                print(f"{label}: {folder} ({size / 1e6:.1f} MB)")
        if push is not None and critics:
            named = name or run.absolute().name
            for critic, repository in push_critics(folders, push, named, private=private).items():
                print(f"{critic}: {repository}")
        elif push is not None:
            pushed = push_agents(folders, push, name or run.absolute().name, private=private)
            for agent, repository in pushed.agents.items():
                print(f"{agent}: {repository}")
            print(f"collection: {pushed.collection}")
