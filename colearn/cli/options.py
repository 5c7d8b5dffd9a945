"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ConfigName = Annotated[str, typer.Argument(help="A shipped config's name or the path of a .yaml.")]
Out = Annotated[Path, typer.Option("--out", help="Folder for everything that is written.")]
Sets = Annotated[
    list[str], typer.Option("--set", help="dotted.key=value, over the config; repeatable.")
]
