"""Finds the files of a user's code that a config names, and the files that the code names, without
importing the code."""

from __future__ import annotations

import ast
import hashlib
import inspect
import sys
import sysconfig
import textwrap
import tokenize
from collections.abc import Iterator
from functools import partial
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Any

from .named_files import CODE, YAML, name_of_node, named_in_code, named_in_yaml, text_of_node
from .own_code import FolderFinder, folders

_INSTALLED = frozenset(
    Path(path).resolve()
    for name in ("purelib", "platlib", "stdlib", "platstdlib")
    if (path := sysconfig.get_paths().get(name))
)
"""Folders of installed packages and of the standard library."""
_IMPORTERS = ("import_module", "__import__")


def code_files(module: str) -> dict[str, Path]:
    """Returns the files of a module, keyed by their path within the folder of the module's root.

    Of a package, all modules are included. If the module is in a folder of the user, the modules
    beside it that its files import, and the files that its texts name, are included as well.
    The result is empty for a module that is not found and for modules of colearn.
    """
    found = _found(module)
    if found is None:
        return {}
    origin, home = found
    if home.resolve() in _INSTALLED:
        return _named(home, _modules(origin))
    return files_beside(origin, home)


def definition_digest(module: str, name: str) -> dict[str, str]:
    """Returns the digest of a function's or class's source, keyed by its name, read from the file
    of a module; empty if it is not defined at the top of that file."""
    for file in code_files(module).values():
        if file.stem == module.rpartition(".")[2]:
            for node in _parsed(file).body:
                if isinstance(node, _DEFINITIONS) and node.name == name:
                    return {name: _dumped(node)}
    return {}


def object_digest(value: Any) -> dict[str, str]:
    """Returns the digest of the source of a function, of a class, or of an object's class, keyed by
    its name; empty for one that has no source in Python. It is the digest that `definition_digest`
    returns for the same source, whichever module has it."""
    value = value.func if isinstance(value, partial) else value
    defined = value if inspect.isroutine(value) or isinstance(value, type) else type(value)
    if defined.__module__.partition(".")[0] in ("builtins", "colearn"):
        return {}
    try:
        (node,) = ast.parse(textwrap.dedent(inspect.getsource(defined))).body
    except (OSError, TypeError, SyntaxError, ValueError):  # a lambda, code that was typed in
        return {}
    return {node.name: _dumped(node)} if isinstance(node, _DEFINITIONS) else {}


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _dumped(node: ast.AST) -> str:
    return hashlib.sha256(ast.dump(node).encode()).hexdigest()


def files_beside(file: Path, home: Path) -> dict[str, Path]:
    """Returns a Python or YAML file, the modules of `home` that it imports, and the files that its
    texts name, keyed by path; the imports and texts of those files are followed as well."""
    found: set[Path] = set()
    waiting = list(_modules(file))
    while waiting:
        current = waiting.pop()
        if current in found:
            continue
        found.add(current)
        if current.suffix == CODE:
            waiting += [path for path in _references(current, home) if path not in found]
        elif current.suffix in YAML:
            waiting += named_in_yaml(current)
    return _named(home, found)


def _named(home: Path, files: set[Path]) -> dict[str, Path]:
    return {
        (file.relative_to(home) if file.is_relative_to(home) else file).as_posix(): file
        for file in sorted(files)
    }


def _found(module: str) -> tuple[Path, Path] | None:
    """The file of a module or of the first package in its name, found as an import would find it,
    and the folder that holds the module's root."""
    root = module.partition(".")[0]
    if not root.isidentifier() or root in {"colearn", *sys.builtin_module_names}:
        return None
    spec = getattr(sys.modules.get(root), "__spec__", None) or _spec(root)
    if spec is None:
        return None
    if spec.origin is not None and (origin := Path(spec.origin)).is_file():
        return origin, origin.parents[1 if origin.name == "__init__.py" else 0]
    for place in spec.submodule_search_locations or ():  # of a folder without __init__.py
        home = Path(place).parent
        if (file := _beside(module, home)) is not None:
            return file, home
    return None


def _spec(root: str) -> ModuleSpec | None:
    for finder in sys.meta_path:
        if not isinstance(finder, FolderFinder):
            spec = finder.find_spec(root, None)
            if spec is not None:
                return spec
    return PathFinder.find_spec(root, list(folders()))


def _modules(file: Path) -> set[Path]:
    """The file and, if it is a package's, all modules of the package."""
    return {file, *file.parent.rglob("*.py")} if file.name == "__init__.py" else {file}


def _references(file: Path, home: Path) -> Iterator[Path]:
    """Yields the files of the modules of `home` that a file imports, and the files that its texts
    name."""
    tree = _parsed(file)
    yield from named_in_code(tree, (file.parent, home, Path.cwd()))
    for node in ast.walk(tree):
        for name, folder in _imported(node, file, home):
            if (beside := _beside(name, folder)) is not None:
                yield from _modules(beside)


def _imported(node: ast.AST, file: Path, home: Path) -> Iterator[tuple[str, Path]]:
    """Yields the names that a statement or call may load as modules, each with the folder of its
    root."""
    if isinstance(node, ast.Import):
        yield from ((alias.name, home) for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.level <= len(file.parents):
        folder = file.parents[node.level - 1] if node.level else home
        if node.module:
            yield node.module, folder
        above = f"{node.module}." if node.module else ""
        yield from ((f"{above}{alias.name}", folder) for alias in node.names)
    elif isinstance(node, ast.Call) and name_of_node(node.func) in _IMPORTERS and node.args:
        name = text_of_node(node.args[0]) or ""
        level = len(name) - len(name.lstrip("."))
        if level <= len(file.parents):
            yield name.lstrip("."), file.parents[level - 1] if level else home


def _parsed(file: Path) -> ast.Module:
    """The syntax tree of a file; empty if the file cannot be read, as an import of it will say."""
    try:
        with tokenize.open(file) as opened:
            return ast.parse(opened.read())
    except (OSError, SyntaxError, ValueError):
        return ast.Module([], [])


def _beside(module: str, home: Path) -> Path | None:
    """The file of a module or of the first package in its name, if its root is in `home`."""
    parts, path = module.split("."), home
    if parts[0] == "colearn" or not all(map(str.isidentifier, parts)):
        return None
    for part in parts:
        path /= part
        for file in (path / "__init__.py", path.with_name(f"{part}.py")):
            if file.is_file():
                return file
    return None
