"""The generated reference is complete: settings, metrics, commands, errors and public names."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from colearn.config import load_config, shipped_configs
from colearn.contract.algorithm import ValueLoss
from colearn.registry import load
from colearn.runs.record.metric_names import RUN_METRICS
from colearn.tasks.metrics import TASK_METRICS
from colearn.tasks.setting_sentences import SENTENCES
from colearn.training.loop import Experiment

DOCS = Path(__file__).parents[2] / "docs"


def _reference():
    sys.path.insert(0, str(DOCS))
    spec = importlib.util.spec_from_file_location("_reference", DOCS / "_reference.py")
    module = sys.modules["_reference"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


reference = _reference()
benchmarks = sys.modules["_benchmarks"]
PAGES = {path.name: path.read_text() for path in (DOCS / "reference").glob("*.md")}
GUIDES = ["README.md", *sorted(str(p.relative_to(DOCS.parent)) for p in DOCS.rglob("*.md"))]
TASKS = {
    "dpomdp": {"problem": "lock"},
    "reasoning_gym": {"data": "chain_sum", "size": 2, "test_size": 1},
    "textarena": {"env": "TicTacToe-v0"},
}
NEEDS_FILES = {"dataset", "environment", "gateway", "harbor", "openenv", "verifiers", "workflow"}


def test_every_setting_of_a_config_has_a_sentence() -> None:
    empty = [
        f"{path}.{setting.name}"
        for path, cls in reference.sections().items()
        for setting in reference.model_settings(cls)
        if not setting.meaning
    ]
    assert empty == []


@pytest.mark.parametrize("kind", reference.PART_KINDS)
def test_every_setting_of_a_part_has_a_sentence(kind: str) -> None:
    empty = [
        f"{name}.{setting.name}"
        for name, cls in reference.registered(kind).items()
        for setting in reference.part_settings(cls)
        if not setting.meaning
    ]
    assert empty == []


def test_every_setting_of_the_value_loss_has_a_sentence() -> None:
    assert all(setting.meaning for setting in reference.part_settings(ValueLoss))


@pytest.mark.parametrize("task", reference.registered("tasks"))
def test_every_setting_of_a_task_has_a_sentence(task: str) -> None:
    settings = reference.part_settings(load("tasks", task, "name"), SENTENCES.get(task))
    assert [setting.name for setting in settings if not setting.meaning] == []
    assert set(SENTENCES.get(task, ())) <= {setting.name for setting in settings}


def test_every_option_of_a_command_has_a_sentence() -> None:
    empty = [
        f"{name} {option.name}"
        for name, command in reference.commands().items()
        for option in command.params
        if not getattr(option, "help", None)
    ]
    assert empty == []


def test_a_setting_has_its_bounds_and_default() -> None:
    settings = {one.name: one for one in reference.model_settings(reference.sections()["train"])}
    assert settings["episodes"].default == "`4`"
    assert settings["episodes"].bounds == "≥ 1, ≤ 1e+06"
    assert settings["target_kl"].type == "number or none"


@pytest.mark.parametrize("task", sorted(set(TASK_METRICS) - NEEDS_FILES))
def test_the_table_of_metrics_has_those_of_a_task(task: str) -> None:
    built = load("tasks", task, "name")(**TASKS.get(task, {}))
    state = built.reset(built.items("train")[0], np.random.default_rng(0))
    names = {
        re.sub(r"^penalty_\w+$", "penalty_ROLE", re.sub(r"_player_\d$", "_PLAYER", name))
        for name in built.metrics(state)
    }
    assert names == set(TASK_METRICS[task])


def test_the_table_of_metrics_has_every_task() -> None:
    assert set(TASK_METRICS) == set(reference.registered("tasks"))


def test_the_table_of_metrics_has_those_of_a_run(tmp_path: Path) -> None:
    config = load_config(
        {
            "task": {"name": "dpomdp", "problem": "two_step", "penalty": -10},
            "algorithm": {
                "name": "collm_cc",
                "loss": {"clip": 0.2, "kl": 0.1, "entropy": 0.1, "importance_cap": 2.0},
            },
            "models": {"*": {"path": "embedded-tiny-untrained", "learning_rate": 1e-3}},
            "agents": {"*": {"sampling": {"max_tokens": 2}}},
            "critic": {"path": "embedded-tiny-untrained", "learning_rate": 1e-3},
            "train": {"environment_steps": 8, "episodes": 4, "epochs": 2},
            "evaluation": {"exact": True, "episodes": 4},
        }
    )
    Experiment(config, tmp_path / "run").run()
    lines = map(json.loads, (tmp_path / "run" / "metrics.jsonl").read_text().splitlines())
    known = {name for metrics in RUN_METRICS.values() for name in metrics}
    known |= set(TASK_METRICS["dpomdp"])
    written = {
        re.sub(r"agent_\d|\bteam\b", "MODEL", name) for line in lines for name in line["metrics"]
    }
    assert written <= known


def test_every_public_package_is_on_a_page() -> None:
    directives = set(re.findall(r"<!-- generated: api ([\w.]+) -->", "".join(PAGES.values())))
    assert directives == set(reference.PUBLIC)


def _imported(page: str) -> Iterator[tuple[str, Any]]:
    """The classes and functions of colearn that the page's Python blocks import, by full name."""
    for block in re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "colearn":
                module = importlib.import_module(node.module)
                for alias in node.names:
                    value = getattr(module, alias.name)
                    if inspect.isclass(value) or inspect.isfunction(value):
                        yield f"{value.__module__}.{value.__qualname__}", value


@pytest.mark.parametrize("page", GUIDES)
def test_every_name_that_a_page_imports_has_an_entry(page: str) -> None:
    kinds = (*reference.PART_KINDS, "algorithms", "tasks", "wrappers", "trackers")
    parts = {cls for kind in kinds for cls in reference.registered(kind).values()}
    known = reference.public_names()
    text = (DOCS.parent / page).read_text(encoding="utf-8")
    missing = {name for name, value in _imported(text) if name not in known and value not in parts}
    assert missing == set()


def test_every_public_name_has_a_docstring() -> None:
    bare = [name for name, value in reference.public_names().items() if not inspect.getdoc(value)]
    assert bare == []


def test_every_marker_of_a_page_is_filled() -> None:
    for name, page in PAGES.items():
        assert "<!-- generated" not in reference.filled(page), name


def test_every_algorithm_has_a_benchmark_row_or_is_named_as_without() -> None:
    measured, without = set(benchmarks.ROWS), set(benchmarks.WITHOUT)
    assert measured | without == set(reference.registered("algorithms"))
    assert not measured & without


@pytest.mark.parametrize("algorithm", benchmarks.ROWS)
def test_the_benchmark_row_of_an_algorithm_is_in_its_file(algorithm: str) -> None:
    row = benchmarks.ROWS[algorithm]
    shown = benchmarks.benchmark_text(algorithm).strip().splitlines()[-1]
    lines = (benchmarks.RESULTS / row.file).read_text().splitlines()
    cells = [one.strip() for one in shown.strip("| ").split("|")]
    assert any(line.startswith(f"| {cells[0]} |") and set(cells) <= _cells(line) for line in lines)


def test_a_benchmark_row_shows_the_numbers_of_its_algorithm() -> None:
    gradient = benchmarks.benchmark_text("mareinforce")
    assert "| dec_tiger H=3 | MA-REINFORCE, tree(4) | 0.000 | 0.00 (0.00-0.40) | 6246" in gradient
    assert "| 4 | coma | not reached |" in benchmarks.benchmark_text("coma")


def _cells(line: str) -> set[str]:
    return {cell.strip() for cell in line.split("|")}


def test_every_config_at_paper_size_has_its_memory_or_is_named_as_not_counted() -> None:
    text = reference.filled((DOCS / "papers" / "tables.md").read_text())
    rows = re.findall(r"^\| `(paper/\w+)` \| `(\w+)` \| .* \| [\d,]+ \| ", text, re.M)
    (left,) = re.findall(r"^Not counted yet: (.*)\.$", text, re.M) or [""]
    named = [*(name for name, _ in rows), *re.findall(r"`([\w/]+)`", left)]
    assert sorted(named) == sorted(name for name in shipped_configs() if "paper/" in name)
    assert all(label in load_config(name).compare.algorithms for name, label in rows)


@pytest.mark.parametrize("page", PAGES)
def test_the_line_for_readers_of_a_clone_is_not_on_the_site(page: str) -> None:
    assert PAGES[page].count("\nIn a clone ") == 1
    assert "In a clone " not in reference.filled(PAGES[page].replace("<!-- generated", "<!-- kept"))
