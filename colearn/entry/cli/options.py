"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from colearn.errors import ConfigError

if TYPE_CHECKING:
    from colearn.estimate.machine import Machine
    from colearn.runs.record.checkpoints import Checkpoint, Step
    from colearn.training.team import Team


def place(context: typer.Context, option: typer.CallbackParam, path: Path | None) -> Path | None:
    """Returns the value of an option that names a folder or a file to write. Errors: as for
    `named_folder`."""
    if path is None or context.resilient_parsing:
        return path
    from colearn.runs.record.place import named_folder

    return named_folder(path, option.opts[0])


ConfigName = Annotated[str, typer.Argument(help="A shipped config's name or the path of a .yaml.")]
Out = Annotated[
    Path,
    typer.Option("--out", callback=place, help="Folder for everything that is written."),
]
Sets = Annotated[
    list[str], typer.Option("--set", help="dotted.key=value, over the config; repeatable.")
]

Devices = Annotated[
    str | None,
    typer.Option(
        "--devices", help="For --dry-run: a machine that is not here, such as 2xH100-80GB."
    ),
]


def read_devices(devices: str | None, dry_run: bool) -> Machine | None:
    """Returns the machine that `--devices` describes; None: this machine.

    Errors: ConfigError if the form is invalid, or if --dry-run is missing.
    """

    if devices is None:
        return None
    if not dry_run:
        raise ConfigError("--devices: describes a machine for --dry-run; set run.device for a run")
    from colearn.estimate.machine import read_machine  # imports torch and transformers

    return read_machine(devices)


def read_step(text: str) -> Step:
    """Converts the value of `--step`. Errors: ConfigError for a text that is not `last`, `best` or
    an iteration."""

    if text == "last":
        return "last"
    if text == "best":
        return "best"
    if text.isascii() and text.isdigit():
        return int(text)
    raise ConfigError(f"--step {text}: give last, best or a checkpoint's iteration")


def checkpoint_team(run: str | Path, step: str, sets: Sequence[str]) -> tuple[Team, Checkpoint]:
    """Loads the team of a run and returns it with the chosen checkpoint, on whose base models it
    stands. The checkpoint's weights are not loaded yet."""
    from colearn.runs.record import open_run

    folder = open_run(run)
    config = folder.config(sets)
    chosen = read_step(step)

    from colearn.training.evaluation.again import at_checkpoint

    return at_checkpoint(folder, config, chosen)
