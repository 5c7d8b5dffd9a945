"""Generates reference text from the code: settings, parts, tasks, algorithms, commands, errors.

Pages in docs/reference/ contain markers such as `<!-- generated: settings -->`; the site's hook
replaces each by the text of the function in `_TEXTS`. The same functions are tested without
mkdocs, so that a setting without a sentence is a failing test.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import typer
import yaml
from _benchmarks import benchmark_text, paper_memory_text

import colearn
from colearn.config import shipped_configs
from colearn.config.setting_table import SettingRow, model_settings, part_settings, sections
from colearn.contract.algorithm import ValueLoss
from colearn.entry.cli import app
from colearn.registry import KINDS, Kind, load, names
from colearn.runs.record.metric_names import RUN_METRICS, Metric
from colearn.tasks.metrics import TASK_METRICS
from colearn.tasks.setting_sentences import SENTENCES

PACKAGE = Path(colearn.__file__).parent

PART_KINDS: Mapping[Kind, str] = {
    "rollouts": "algorithm.rollout",
    "credits": "algorithm.credit",
    "advantages": "algorithm.advantage",
    "critics": "algorithm.critic",
    "losses": "algorithm.loss",
    "rewards": "task.reward",
    "casts": "cast",
    "callbacks": "run.callbacks",
    "programs": "agents.NAME.program",
    "generators": "run.generator",
    "learners": "run.learner",
    "hosts": "run.host",
}
"""Kinds of parts with settings of their own, and the section of a config that holds them."""


def _flat(text: str) -> str:
    return " ".join(text.split())


# --- pages --------------------------------------------------------------------------------------


def table(settings: Sequence[SettingRow]) -> str:
    """A Markdown table of settings."""
    if not settings:
        return "No settings.\n"
    rows = ["| setting | meaning | type | default | bounds |", "|---|---|---|---|---|"]
    for one in settings:
        cells = (f"`{one.name}`", one.meaning, one.type, one.default, one.bounds)
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(rows) + "\n"


def settings_text() -> str:
    """Every section of a config."""
    parts = []
    for path, cls in sections().items():
        parts.append(f"## {f'`{path}`' if path else 'The config'}\n\n")
        parts.append(table(model_settings(cls)) + "\n")
    return "".join(parts)


def parts_text() -> str:
    """Every registered part by section, with its settings."""
    parts = []
    for kind, section in PART_KINDS.items():
        parts.append(f"## `{section}`\n\n")
        for name, cls in registered(kind).items():
            parts.append(f"### `{name}` {{ #{kind}-{name} }}\n\n{_doc(cls)}\n\n")
            parts.append(table(part_settings(cls)) + "\n")
    parts.append(f"## `algorithm.value_loss`\n\n{_doc(ValueLoss)}\n\n")
    parts.append(table(part_settings(ValueLoss)) + "\n")
    parts.append("## `wrapper`\n\nWrappers have no settings.\n\n")
    for name, cls in registered("wrappers").items():
        parts.append(f"### `{name}` {{ #wrappers-{name} }}\n\n{_doc(cls)}\n\n")
    parts.append("## `run.trackers`\n\nThe settings of a tracker are forwarded to its package.\n\n")
    for name, cls in registered("trackers").items():
        parts.append(f"### `{name}` {{ #trackers-{name} }}\n\n{_doc(cls)}\n\n")
    return "".join(parts)


def algorithms_text() -> str:
    """Every algorithm: equation, source, limits, parts, benchmark row and shipped configs."""
    parts = []
    for name, cls in registered("algorithms").items():
        module = inspect.getmodule(cls)
        source = _flat((module.__doc__ or "") if module else "")
        chosen = cls().checked_parts()
        rows = [
            f"| `{kind}` | `{type(part).__name__}` |"
            for kind in ("rollout", "credit", "advantage", "loss", "critic")
            if (part := getattr(chosen, kind)) is not None
        ]
        parts.append(
            f"### `{name}` {{ #algorithms-{name} }}\n\n{_doc(cls)}\n\nModule: {source}\n\n"
        )
        parts.append("| part | default |\n|---|---|\n" + "\n".join(rows) + "\n")
        parts.append(f"| `discount` | {chosen.discount:g} |\n\n")
        parts.append(benchmark_text(name))
        parts.append(_configs_line(configs_by_algorithm().get(name, ())))
    return "".join(parts)


def tasks_text() -> str:
    """Every task: its docstring, settings, metrics and shipped configs."""
    parts = []
    for name, cls in registered("tasks").items():
        parts.append(f"### `{name}` {{ #tasks-{name} }}\n\n{_doc(cls)}\n\n")
        parts.append(table(part_settings(cls, SENTENCES.get(name))) + "\n")
        parts.append(metric_table(TASK_METRICS[name]) + "\n")
        parts.append(_configs_line(configs_by_task().get(name, ())))
    return "".join(parts)


def metrics_text() -> str:
    """The metrics of every run."""
    parts = []
    for section, metrics in RUN_METRICS.items():
        parts.append(f"## {section}\n\n{metric_table(metrics)}\n")
    return "".join(parts)


def metric_table(metrics: Mapping[str, Metric]) -> str:
    """A Markdown table of metrics."""
    rows = ["| metric | meaning | unit | better |", "|---|---|---|---|"]
    for name, one in metrics.items():
        rows.append(f"| `{name}` | {one.meaning} | {one.unit} | {one.better or ''} |")
    return "\n".join(rows) + "\n"


def commands_text() -> str:
    """Every command with its arguments and options."""
    parts = []
    for name, command in commands().items():
        parts.append(f"## `colearn {name}`\n\n{_flat(command.help or '')}\n\n")
        rows = ["| argument or option | meaning | default |", "|---|---|---|"]
        for one in command.params:
            words = ", ".join(one.opts)
            if one.param_type_name == "argument":
                words = words.upper()
            empty = one.default in (None, (), [], False) or callable(one.default)
            default = "" if empty else one.default
            meaning = _flat(getattr(one, "help", None) or "")
            required = "required" if one.required else ""
            shown_default = required or (f"`{default}`" if default != "" else "")
            rows.append(f"| `{words}` | {meaning} | {shown_default} |")
        parts.append("\n".join(rows) + "\n\n")
    return "".join(parts)


def errors_text() -> str:
    """Every public error."""
    rows = ["| error | raised when |", "|---|---|"]
    rows += [f"| `{name}` | {sentence} |" for name, sentence in errors().items()]
    return "\n".join(rows) + "\n"


# --- public names -------------------------------------------------------------------------------

PUBLIC = (
    "colearn",
    "colearn.methods.advantage.group_baseline",
    "colearn.deploy.client",
    "colearn.config.build",
    "colearn.contract",
    "colearn.methods.critic.stream",
    "colearn.errors",
    "colearn.estimate",
    "colearn.training.evaluation.pass_at_k",
    "colearn.deploy.export",
    "colearn.training.learners.checkpoint_files",
    "colearn.training.learners.learner",
    "colearn.training.learners.torch_optimizer",
    "colearn.runs.record.metric_names",
    "colearn.contract.picture",
    "colearn.deploy.play",
    "colearn.programs.workflow.qa",
    "colearn.registry",
    "colearn.rollout.shapes",
    "colearn.programs.sandbox",
    "colearn.exact.exact_value",
    "colearn.exact.histories",
    "colearn.exact.search",
    "colearn.tasks.pettingzoo.phrasing",
    "colearn.tasks.search.question",
    "colearn.contract.testing",
    "colearn.programs.workflow.tools",
    "colearn.contract.types",
    "colearn.programs.workflow",
)
"""Modules whose public names have an entry in the reference."""


def public_names(packages: Sequence[str] = PUBLIC) -> dict[str, Any]:
    """Public classes and functions by the name under which they are defined."""
    found: dict[str, Any] = {}
    for package in packages:
        module = importlib.import_module(package)
        listed = getattr(module, "__all__", None)
        for name in listed if listed is not None else vars(module):
            value = getattr(module, name)
            if not (inspect.isclass(value) or inspect.isfunction(value)) or name.startswith("_"):
                continue
            if listed is not None or value.__module__ == package:
                found[f"{value.__module__}.{value.__qualname__}"] = value
    return found


def api_text(package: str) -> str:
    """Directives of mkdocstrings for the public names of a package."""
    module = importlib.import_module(package)
    directives = [
        f"::: {path}\n    options: {{heading_level: 3}}\n" for path in public_names((package,))
    ]
    summary = inspect.cleandoc(module.__doc__ or "").split("\n\n")[0]
    return f"## `{package}`\n\n{_flat(summary)}\n\n" + "\n".join(directives)


# --- sources ------------------------------------------------------------------------------------


@cache
def registered(kind: Kind) -> dict[str, type[Any]]:
    """The shipped classes of a kind by name."""
    shipped = importlib.import_module(KINDS[kind].package).NAMES
    return {name: load(kind, name, "name") for name in names(kind) if name in shipped}


def commands() -> dict[str, Any]:
    """The commands of the command line by name."""
    found: dict[str, Any] = {}
    for name, command in typer.main.get_group(app).commands.items():
        inside = getattr(command, "commands", None)
        found |= (
            {name: command} if inside is None else {f"{name} {n}": c for n, c in inside.items()}
        )
    return found


@cache
def errors() -> dict[str, str]:
    """The first sentences of all subclasses of ColearnError by name, in the order of the files."""
    sentences: dict[str, str] = {}
    known = {"ColearnError"}
    for path in [PACKAGE / "errors.py", *sorted(PACKAGE.rglob("*.py"))]:
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.ClassDef):
                continue
            bases = {base.id for base in node.bases if isinstance(base, ast.Name)}
            if node.name in known or bases & known:
                known.add(node.name)
                sentences[node.name] = _flat((ast.get_docstring(node) or "").split("\n\n")[0])
    return sentences


@cache
def _shipped() -> dict[str, Any]:
    return {
        name: yaml.safe_load(Path(path).read_text()) for name, path in shipped_configs().items()
    }


@cache
def configs_by_task() -> dict[str, tuple[str, ...]]:
    """Shipped configs by the task that they name."""
    found: dict[str, list[str]] = {}
    for config, data in _shipped().items():
        if isinstance(data.get("task"), dict):
            found.setdefault(data["task"]["name"], []).append(config)
    return {name: tuple(configs) for name, configs in found.items()}


@cache
def configs_by_algorithm() -> dict[str, tuple[str, ...]]:
    """Shipped configs by the algorithms that they name."""
    found: dict[str, list[str]] = {}
    for config, data in _shipped().items():
        used = {(data.get("algorithm") or {}).get("name")}
        for label, changes in ((data.get("compare") or {}).get("algorithms") or {}).items():
            used.add((changes or {}).get("algorithm.name", label))
        for name in used:
            found.setdefault(str(name), []).append(config)
    return {name: tuple(configs) for name, configs in found.items()}


def _configs_line(configs: Sequence[str]) -> str:
    if not configs:
        return "Shipped configs: none.\n\n"
    return "Shipped configs: " + ", ".join(f"`{name}`" for name in configs) + ".\n\n"


def _doc(cls: type) -> str:
    """A docstring as Markdown: indented blocks stay code, entries of settings move to the table."""
    text = inspect.cleandoc(
        next((o.__dict__["__doc__"] for o in cls.__mro__ if o.__dict__.get("__doc__")), "")
    )
    text = re.sub(
        r"(?:^Settings:\n\n)?(?:^- (?:`\w+`(?:, )?)+: .+(?:\n  .+)*\n?)+", "", text, flags=re.M
    )
    return text.strip()


_TEXTS: Mapping[str, Callable[..., str]] = {
    "settings": settings_text,
    "parts": parts_text,
    "algorithms": algorithms_text,
    "tasks": tasks_text,
    "metrics": metrics_text,
    "commands": commands_text,
    "errors": errors_text,
    "api": api_text,
    "paper_memory": paper_memory_text,
}


_IN_A_CLONE = "In a clone "


def filled(markdown: str) -> str:
    """The page with each marker `<!-- generated: NAME ARGUMENTS -->` replaced by its text, and
    without the line that tells readers of the source where this text is."""
    return re.sub(
        r"<!-- generated: (\w+) ?([\w. ]*) -->",
        lambda mark: _TEXTS[mark[1]](*mark[2].split()),
        re.sub(rf"^{_IN_A_CLONE}.*\n\n", "", markdown, flags=re.M),
    )
