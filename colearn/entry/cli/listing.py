"""`colearn tasks`, `algorithms`, `configs` and `settings` list the shipped items; `colearn check`
checks a task."""

from __future__ import annotations

import importlib
import inspect
import shutil
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from colearn.errors import ConfigError, nearest

from .options import Sets

if TYPE_CHECKING:
    from colearn.config.setting_table import SettingRow
    from colearn.registry import Kind


Wanted = Annotated[str | None, typer.Argument(help="One of them, shown with its settings.")]


def tasks(name: Wanted = None) -> None:
    """List the tasks with their descriptions, or one task's settings."""
    if name is None:
        return _list("tasks")
    from colearn.config.setting_table import part_settings
    from colearn.registry import task_class

    sentences = importlib.import_module("colearn.tasks.setting_sentences").SENTENCES
    cls = task_class(name, "task")
    rows = part_settings(cls, sentences.get(name))
    text = inspect.getdoc(_documented(cls, "tasks")) or ""
    _print_settings(text.partition("\n\n")[0], "task.", rows)


def algorithms(name: Wanted = None) -> None:
    """List the algorithms with their descriptions, or one algorithm's settings."""
    if name is None:
        return _list("algorithms")
    from colearn.config.setting_table import algorithm_settings
    from colearn.registry import algorithm_class

    cls = algorithm_class(name, "algorithm")
    _print_settings(inspect.getdoc(cls) or "", "", algorithm_settings(cls()))


def configs(name: Wanted = None) -> None:
    """List the shipped configs, or print one config."""
    from colearn.config import shipped_configs

    known = shipped_configs()
    if name is not None:
        if name not in known:
            raise ConfigError(f"config: unknown '{name}'; {nearest(name, known)}")
        print(known[name].read_text(), end="")
        return
    for each, path in known.items():
        first = path.read_text().splitlines()[0].removeprefix("#").strip()
        _print_row(each, first, 24)


def settings(
    section: Annotated[
        str | None, typer.Argument(help="A section, such as train or models; none: all.")
    ] = None,
) -> None:
    """List the settings of a config, or of one section, with types and defaults."""
    from colearn.config.setting_table import model_settings, sections

    known = sections()
    tops = {path.partition(".")[0] for path in known} - {""}
    if section is not None and section not in tops:
        raise ConfigError(f"settings: no section '{section}'; {nearest(section, tops)}")
    rows = [
        replace(setting, name=f"{path}.{setting.name}" if path else setting.name)
        for path, cls in known.items()
        if section is None or path.partition(".")[0] == section
        for setting in model_settings(cls)
    ]
    _print_rows(rows)


def check(
    task: Annotated[str, typer.Argument(help="A task's name.")],
    sets: Sets = [],  # noqa: B006 - typer reads the default, nobody changes it
    model: Annotated[
        str | None, typer.Option(help="Path of a model whose untrained play is measured, too.")
    ] = None,
) -> None:
    """Check whether a task fulfils the contract: purity, determinism (in fresh processes, too),
    privacy, types, horizon, pickling. Then print what random legal play earns, and with --model
    what this model earns before training."""
    from colearn.config import build_task, load_config
    from colearn.contract.testing import check_task
    from colearn.contract.testing.fresh_plays import check_fresh_plays
    from colearn.training.evaluation.random_play import random_play_lines, untrained_play_line

    data: dict[str, Any] = {"task": {"name": task}, "models": {}}
    changes = [pair if pair.startswith("task.") else f"task.{pair}" for pair in sets]
    built = build_task(load_config(data, changes))
    check_task(built)
    check_fresh_plays(data, changes)
    lines = random_play_lines(built)  # finds what only valid replies reach
    print(f"{task}: holds the contract", *lines, sep="\n")
    if model is not None:
        data |= {"models": {"*": {"path": model}}, "algorithm": {"name": "untrained"}}
        data["evaluation"] = {"episodes": 20}
        print(untrained_play_line(load_config(data, changes)))


def _list(kind: Kind) -> None:
    from colearn.registry import load, names

    for name in names(kind):
        text = inspect.getdoc(_documented(load(kind, name), kind)) or ""
        _print_row(name, text.partition("\n")[0], 16)


def _documented(cls: type, kind: Kind) -> Any:
    """Returns the object whose docstring describes a class, which is the module of the class, or
    the class itself if the module defines several classes of this kind."""
    from colearn.registry import load, names

    modules = [load(kind, name).__module__ for name in names(kind)]
    return inspect.getmodule(cls) if modules.count(cls.__module__) == 1 else cls


def _print_settings(text: str, prefix: str, settings: Iterable[SettingRow]) -> None:
    """Print a description and a row for each setting: `key  sentence (type, bounds, default)`."""
    print(f"{text}\n")
    rows = [replace(setting, name=f"{prefix}{setting.name}") for setting in settings]
    if not rows:
        print("No settings.")
    _print_rows(rows)


def _print_rows(rows: Sequence[SettingRow]) -> None:
    for setting in rows:
        default = setting.default if setting.default == "required" else f"default {setting.default}"
        facts = ", ".join(filter(None, (setting.type, setting.bounds, default)))
        sentence = f"{setting.meaning} ({facts})".replace("`", "").strip()
        _print_row(setting.name, sentence, max(len(row.name) for row in rows))


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
