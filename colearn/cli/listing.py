"""`colearn tasks`, `algorithms`, `configs` and `check`: lists what is registered, checks a task."""

from __future__ import annotations

import inspect
import shutil
import textwrap
from collections import Counter
from typing import Annotated, Any

import typer

from .options import Sets


def tasks() -> None:
    """List the tasks with their descriptions."""
    _list("tasks")


def algorithms() -> None:
    """List the algorithms with their descriptions."""
    _list("algorithms")


def configs() -> None:
    """List the shipped configs."""
    from colearn.config import shipped_configs

    for name, path in shipped_configs().items():
        first = path.read_text().splitlines()[0].removeprefix("#").strip()
        _print_row(name, first, 24)


def check(
    task: Annotated[str, typer.Argument(help="A task's name.")],
    sets: Sets = [],  # noqa: B006 - typer reads the default, nobody changes it
) -> None:
    """Check a task against the contract: purity, determinism, privacy, types, horizon, pickling."""
    from colearn.config import build_task, load_config
    from colearn.testing import check_task

    data: dict[str, Any] = {"task": {"name": task}, "models": {}}
    check_task(build_task(load_config(data, [f"task.{pair}" for pair in sets])))
    print(f"{task}: holds the contract")


def _list(kind: Any) -> None:
    from colearn.registry import load, names

    classes = {name: load(kind, name) for name in names(kind)}
    modules = Counter(one.__module__ for one in classes.values())
    for name, one in classes.items():
        # a class that shares its file speaks for itself
        documented = one if modules[one.__module__] > 1 else inspect.getmodule(one)
        _print_row(name, (inspect.getdoc(documented) or "").partition("\n")[0], 16)


def _print_row(name: str, text: str, room: int) -> None:
    """Print a row on one line, wrapped on a narrow terminal."""
    width = shutil.get_terminal_size((10_000, 24)).columns
    indent = min(room + 1, width // 3)
    lines = textwrap.wrap(
        f"{name:{room}} {text}",
        max(width, 20),
        subsequent_indent=" " * indent,
        break_on_hyphens=False,
        drop_whitespace=True,
    )
    print("\n".join(lines))
