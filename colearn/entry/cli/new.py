"""`colearn new task`: writes a working task as a starting point."""

from __future__ import annotations

import importlib.util
import keyword
import re
import shlex
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from colearn.errors import ConfigError

from .options import place


class _Kinds(TyperGroup):
    """The kinds of what can be started; a name in the place of a kind is an error with a hint."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] not in self.commands and not args[0].startswith("-"):
            raise ConfigError(f"colearn new: no kind '{args[0]}'; write colearn new task NAME")
        return super().resolve_command(ctx, args)


app = typer.Typer(name="new", help="Start your own task.", cls=_Kinds)


@app.command()
def task(
    name: Annotated[str, typer.Argument(help="In lower_snake_case.")],
    out: Annotated[
        Path | None, typer.Option("--out", callback=place, help="Folder; default: the name.")
    ] = None,
) -> None:
    """Write a small working task, with its test and config, as a starting point for your own
    task."""
    cls = "".join(part.capitalize() for part in name.split("_"))
    _check_name(name, cls)
    folder = Path(name) if out is None else out
    if out is None and folder.is_dir() and any(folder.iterdir()):
        raise ConfigError(
            f"NAME: a folder {name} is here already; choose another name, or a folder with --out"
        )
    _write(folder, _filled(name, cls))
    print(f"{folder}: {name}.py, test_{name}.py, {name}.yaml, README.md\n\nnext:")
    if folder.resolve() != Path.cwd():
        print(f"  cd {shlex.quote(str(folder))}")
    print(f"  colearn check {name}:{cls}")
    print(f"  pytest test_{name}.py")
    print(f"  colearn train {name}.yaml --out runs/first")
    print(f"  colearn compare {name}.yaml --out comparison")
    print(f"\nthen follow the comments CHANGE 1 to 8 in {name}.py")


def _check_name(name: str, cls: str) -> None:
    from colearn.registry import names

    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name):
        raise ConfigError(f"NAME: '{name}' is not lower_snake_case; write it like two_rooms")
    if keyword.iskeyword(name) or keyword.iskeyword(cls):
        raise ConfigError(f"NAME: '{name}' is a word of Python; choose another name")
    if name in names("tasks"):
        raise ConfigError(f"NAME: there is a task '{name}' already; choose another name")
    module = importlib.util.find_spec(name)
    if module is not None and module.origin is not None:  # no origin: a folder
        raise ConfigError(
            f"NAME: '{name}' would hide the module {name} ({module.origin}); choose another name"
        )
    if re.search(rf"^from .*\b{cls}\b", _read("task.py"), re.M):
        raise ConfigError(
            f"NAME: the class {cls} would hide another that it uses; choose another name"
        )


def _filled(name: str, cls: str) -> dict[str, str]:
    """Returns the contents of the files, by file name."""
    sources = {
        f"{name}.py": "task.py",
        f"test_{name}.py": "test.py",
        f"{name}.yaml": "config.yaml",
        "README.md": "README.md",
    }
    return {
        file: Template(_read(source)).substitute(name=name, cls=cls)
        for file, source in sources.items()
    }


def _read(source: str) -> str:
    path = files("colearn.entry.cli") / "template" / f"{source}.template"
    return path.read_text(encoding="utf-8")


def _write(folder: Path, texts: Mapping[str, str]) -> None:
    """Write all files; if writing fails, remove the files and folders that were created."""
    created: list[Path] = []
    try:
        if folder.is_file():
            raise ConfigError(f"--out {folder}: is a file; name a folder")
        if folder.is_dir() and any(folder.iterdir()):
            raise ConfigError(f"--out {folder}: is not empty; name another folder")
        for place in reversed((folder, *folder.parents)):
            if not place.exists():
                place.mkdir()
                created.append(place)
        for file, text in texts.items():
            created.append(folder / file)
            created[-1].write_text(text, encoding="utf-8")
    except OSError as error:
        for path in reversed(created):
            if path.is_dir():
                path.rmdir()
            else:
                path.unlink(missing_ok=True)
        reason = error.strerror or str(error)
        raise ConfigError(f"--out {folder}: {reason}; name a folder that can be written") from error
