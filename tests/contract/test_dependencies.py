"""The declared dependencies are those that are imported, and constraints.txt holds them all."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from source_trees import source_trees

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = {
    name: packages for name, packages in PROJECT["optional-dependencies"].items() if name != "dev"
}

DISTRIBUTIONS = {"yaml": "pyyaml", "pyspiel": "open-spiel"}
"""Of modules whose distribution goes by another name."""
SCRIPTS = {"_apply_limits", "_plain"}
"""Files beside a sandboxed program, which see no package."""
UNSEEN = {
    "mkdocs-material": "the site's theme",
    "mkdocstrings": "the site's reference",
    "ninja": "DeepSpeed compiles its optimiser with it",
    "pygame": "PettingZoo's classic games import it",
}
"""What is needed without an import of ours."""
ANOTHER_ENVIRONMENT = {
    "deepspeed",
    "openenv",
    "quantized",
    "ray",
    "verifiers",
    "vllm",
}
"""Extras whose versions are not those of the gate."""


def distributions(requirements: list[str]) -> set[str]:
    return {canonicalize_name(Requirement(line).name) for line in requirements}


def named_in(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(level=0, module=str(module)):
                yield module
            case ast.Call(func=ast.Name(id=called), args=[ast.Constant(value=str(module)), *_]) | (
                ast.Call(
                    func=ast.Attribute(attr=called), args=[ast.Constant(value=str(module)), *_]
                )
            ) if called in ("import_module", "required"):
                yield module


def imported() -> set[str]:
    roots = {module.partition(".")[0] for _, tree in source_trees() for module in named_in(tree)}
    roots -= {*sys.stdlib_module_names, *SCRIPTS, "colearn"}
    return {canonicalize_name(DISTRIBUTIONS.get(root, root)) for root in roots}


def test_what_is_imported_is_declared_and_what_is_declared_is_imported() -> None:
    declared = distributions(PROJECT["dependencies"])
    extras = set().union(*map(distributions, EXTRAS.values()))
    assert imported() == declared | extras - UNSEEN.keys()
    assert not declared & extras


def test_dev_has_every_extra_that_the_gate_tests() -> None:
    kept = {*ANOTHER_ENVIRONMENT, "docs", "tasks"}  # the gate installs docs too; a hub has the data
    tested = set().union(
        *(distributions(packages) for name, packages in EXTRAS.items() if name not in kept)
    )
    assert tested <= distributions(PROJECT["optional-dependencies"]["dev"])


@pytest.mark.parametrize("line", PROJECT["dependencies"])
def test_a_dependency_has_a_lower_bound_and_no_upper_one(line: str) -> None:
    (bound,) = Requirement(line).specifier
    assert bound.operator == ">="


def test_the_tested_set_satisfies_every_bound() -> None:
    pinned = dict(
        re.fullmatch(r"([\w.-]+)==(\S+)", line).groups()  # type: ignore[union-attr]
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if not line.startswith("#")
    )
    lists = [packages for name, packages in EXTRAS.items() if name not in ANOTHER_ENVIRONMENT]
    dev = PROJECT["optional-dependencies"]["dev"]
    for line in (*PROJECT["dependencies"], *chain(*lists), *dev):
        wanted = Requirement(line)
        assert pinned[canonicalize_name(wanted.name)] in wanted.specifier, line


@pytest.mark.parametrize("file", ("README.md", "CONTRIBUTING.md", ".ci/run"))
def test_installs_for_the_tests_take_the_tested_set(file: str) -> None:
    lines = re.findall(r"^.*pip install .*-e \.? ?.*$", (ROOT / file).read_text(), re.M)
    first = [line for line in lines if "-m venv .venv &&" in line or "--no-compile" in line]
    assert first
    assert [line for line in first if "-c constraints.txt" not in line] == []
