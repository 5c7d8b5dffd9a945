"""Imports run one way, and the parts that need no torch load none."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import pytest
from source_trees import source_files, source_trees

ROOT = Path(__file__).parents[2]

LAYERS = (
    ("errors", "contract.scored"),
    ("text", "contract.types"),
    ("programs.files", "programs.sandbox", "exact"),
    ("contract",),
    ("registry",),
    ("methods.advantage", "methods.credit", "methods.critic", "methods.loss"),
    ("rollout.agents", "deploy.client"),
    ("config", "rollout"),
    ("models", "runs.over_seeds", "runs.record", "contract.testing"),
    ("engines", "training.learners", "runs.report"),
    ("methods.values", "programs.workflow"),
    ("programs.gateway",),
    ("algorithms", "tasks"),
    ("training",),
    ("estimate",),
    ("runs.comparison",),
    ("entry.python",),
    ("deploy.export",),
    ("deploy.serve",),
    ("deploy.loaded",),
    ("deploy.evaluate",),
    ("deploy.play",),
    ("entry.cli",),
    ("__main__",),
)
"""From the bottom up; a module imports from its own package and from layers below it."""

Kind = Literal["import", "in a function", "for types"]


@dataclass(frozen=True)
class Import:
    """One import statement's source and target, both as full module names."""

    source: str
    target: str
    kind: Kind

    @property
    def layers(self) -> tuple[str, str]:
        return _part(self.source), _part(self.target)


PARTS = {part for layer in LAYERS for part in layer}


def _part(module: str) -> str:
    """The part of LAYERS that a module belongs to; '' is colearn/__init__.py."""
    _, *path = module.split(".")
    inner = ".".join(path[:2])
    return inner if inner in PARTS else [*path, ""][0]


def _module(path: Path) -> tuple[str, bool]:
    """The name of a file's module, and whether it is a package."""
    parts = list(path.with_suffix("").parts)
    if parts[0] != "colearn":
        parts.insert(0, "colearn")
    package = parts[-1] == "__init__"
    return ".".join(parts[:-1] if package else parts), package


@cache
def _imports() -> list[Import]:
    imports = []
    for path, tree in source_trees():
        name, package = _module(path)
        base = name.split(".") if package else name.split(".")[:-1]
        for node, kind in _statements(tree, "import"):
            if isinstance(node, ast.Import):
                targets = [alias.name for alias in node.names]
            else:
                above = base[: len(base) - node.level + 1] if node.level else []
                target = ".".join([*above, *filter(None, [node.module])])
                # `from package import module` names modules, `from module import name` does not
                targets = [target, *(f"{target}.{alias.name}" for alias in node.names)]
            imports += [Import(name, target, kind) for target in targets]
    return imports


def _statements(node: ast.AST, kind: Kind) -> Iterator[tuple[ast.Import | ast.ImportFrom, Kind]]:
    for child in ast.iter_child_nodes(node):
        inside = kind
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            inside = "in a function"
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            inside = "for types"
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, inside
        yield from _statements(child, inside)


def _names() -> set[str]:
    return {_module(path)[0] for path in source_files()}


def _ours() -> list[Import]:
    names = _names()
    return [imported for imported in _imports() if imported.target in names]


def test_every_part_has_a_layer() -> None:
    groups = {"deploy", "entry", "methods", "programs", "runs"}
    assert {_part(module) for module in _names()} == {*PARTS, *groups, ""}


def test_imports_run_one_way() -> None:
    rank = {part: number for number, layer in enumerate(LAYERS) for part in layer}
    rank |= dict.fromkeys(("", "deploy", "entry", "methods", "programs", "runs"), -1)
    upward = {
        (*imported.layers, imported.kind)
        for imported in _ours()
        if imported.layers[0] != imported.layers[1]
        and rank[imported.layers[1]] >= rank[imported.layers[0]]
        # the package says what it exports, to type checkers alone
        and (imported.source, imported.kind) != ("colearn", "for types")
    }
    assert upward == set()


def test_no_two_modules_import_each_other() -> None:
    below: dict[str, set[str]] = {module: set() for module in _names()}
    for imported in _ours():
        # a package's own __init__ gathers what its modules define; the lazy facade names them
        if imported.source != "colearn" and not imported.source.startswith(imported.target + "."):
            below[imported.source].add(imported.target)
    done: set[str] = set()

    def visit(module: str, above: tuple[str, ...]) -> None:
        assert module not in above, " -> ".join([*above, module])
        if module not in done:
            for target in sorted(below[module] - {module}):
                visit(target, (*above, module))
            done.add(module)

    for module in sorted(_names()):
        visit(module, ())


def test_the_core_reaches_algorithms_and_tasks_by_name_only() -> None:
    named = {
        imported.source
        for imported in _ours()
        if imported.layers[1] in ("algorithms", "tasks")
        and imported.layers[0] != imported.layers[1]
    }
    assert named == set()


def test_algorithms_and_tasks_do_not_know_each_other_or_the_loop() -> None:
    above = ("training", "runs.comparison", "entry.cli")
    for imported in _ours():
        if imported.layers[0] in ("algorithms", "tasks"):
            # objects and code of a user are theirs to import, names of parts are not to look up
            assert imported.target not in ("colearn.registry", "colearn.registry.lookup")
            assert imported.layers[1] not in (
                *above,
                *({"algorithms", "tasks"} - {imported.layers[0]}),
            )


def test_algorithms_know_no_device() -> None:
    for imported in _imports():
        if _part(imported.source) == "algorithms":
            root = imported.target.split(".")[0]
            assert root not in ("torch", "accelerate", "transformers", "deepspeed"), imported
    for path, tree in source_trees("algorithms"):
        words = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        words |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        assert not words & {"device", "cuda", "to", "cpu"}, path


def test_a_comparison_does_not_import_the_experiment() -> None:
    """Its runs are processes of their own."""
    assert not [f for f in _ours() if f.layers == ("runs.comparison", "training")]


WITHOUT_TORCH = (
    "contract.types",
    "contract",
    "config",
    "registry",
    "runs.record",
    "runs.comparison",
    "contract.testing",
    "entry.cli",
    "tasks.wrappers",
    "programs.workflow.qa",
    "programs.workflow.tools",
    "programs.workflow",
)


def test_parts_without_devices_and_a_command_without_them_load_no_torch() -> None:
    """`colearn compare` starts its fork server next, which imports torch on another core."""
    code = (
        "import importlib, sys\n"
        f"for module in {WITHOUT_TORCH}:\n"
        "    importlib.import_module(f'colearn.{module}')\n"
        "    print(module, 'torch' in sys.modules)\n"
        "from colearn.entry.cli.options import read_devices\n"
        "print(read_devices(None, dry_run=False), 'torch' in sys.modules)"
    )
    told = dict(line.split() for line in _python("-c", code).stdout.splitlines())
    assert told == dict.fromkeys((*WITHOUT_TORCH, "None"), "False")


LOADED = "print(*{name.partition('.')[0] for name in sys.modules} - set(sys.stdlib_module_names))"
"""Prints the packages outside of the standard library that a program has loaded."""


def test_importing_colearn_loads_the_standard_library_alone() -> None:
    """So that it is quick: torch takes seconds, numpy and pydantic tenths of one."""
    bare = _python("-c", f"import sys; {LOADED}").stdout.split()
    code = f"import sys; import colearn; {LOADED}"
    assert set(_python("-c", code).stdout.split()) - set(bare) == {"colearn"}


def test_help_loads_nothing_slow() -> None:
    code = (
        "import sys; sys.argv = ['colearn', '--help']\n"
        "from colearn.entry.cli import main\n"
        f"try: main()\nfinally: {LOADED}"
    )
    shown = _python("-c", code).stdout
    assert "train" in shown and "colearn" in shown.splitlines()[-1].split()
    slow = {"torch", "transformers", "numpy", "scipy", "pydantic", "yaml", "httpx", "fastapi"}
    assert not slow & set(shown.splitlines()[-1].split())


def _python(*arguments: str) -> subprocess.CompletedProcess[str]:
    aside = {} if "PYTHONPYCACHEPREFIX" in os.environ else {"PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, *arguments],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, **aside},
    )


@pytest.mark.parametrize("name", ["algorithms", "tasks.dpomdp"])
def test_algorithms_and_tasks_refuse_to_load_under_a_second_name(name: str) -> None:
    """An editable install puts the repository's root on the path."""
    command = [sys.executable, "-c", f"import {name}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    package = name.split(".")[0]
    expected = f"import colearn.{package}, not {package}: every class would exist twice"
    assert done.stderr.splitlines()[-1] == f"ImportError: {expected}"
