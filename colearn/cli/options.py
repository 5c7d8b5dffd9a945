"""Options that several commands share."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from colearn.config import Config
    from colearn.record.checkpoints import Step

ConfigName = Annotated[str, typer.Argument(help="A shipped config's name or the path of a .yaml.")]
Out = Annotated[Path, typer.Option("--out", help="Folder for everything that is written.")]
Sets = Annotated[
    list[str], typer.Option("--set", help="dotted.key=value, over the config; repeatable.")
]


def read_step(text: str) -> Step:
    """Errors: ConfigError for what is neither `last`, `best` nor an iteration."""
    from colearn.errors import ConfigError

    if text == "last":
        return "last"
    if text == "best":
        return "best"
    if text.isascii() and text.isdigit():
        return int(text)
    raise ConfigError(f"--step {text}: give last, best or a checkpoint's iteration")


def tell_own_code(config: Config) -> None:
    """Say on stderr which code of its own a config names, before it is imported."""
    from colearn.config import own_code

    if found := own_code(config):
        told = ", ".join(f"{key}: {target}" for key, target in found.items())
        print(f"note: runs code that the config names ({told})", file=sys.stderr)
