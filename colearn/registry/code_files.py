"""Finds the files of a user's code that a config names, and the files that the code names, without
importing the code."""

from __future__ import annotations

import ast
import sys
import sysconfig
import tokenize
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib.machinery import ModuleSpec, PathFinder
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from .named_files import (
    CODE,
    SHELL,
    YAML,
    file_names,
    name_of_node,
    named_in_code,
    named_in_words,
    named_in_yaml,
    text_of_node,
    words_of_command,
)
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
    return package_files(origin) if home.resolve() in _INSTALLED else files_beside(origin, home)


def package_files(file: Path) -> dict[str, Path]:
    """Returns a module's file or, of a package's first file, all modules of the package."""
    home = file.parents[1 if file.name == "__init__.py" else 0]
    return _named(home, _modules(file))


def is_installed(module: str) -> bool:
    """Whether a module is found in a folder of installed packages or of the standard library."""
    found = _found(module)
    return found is not None and found[1].resolve() in _INSTALLED


def files_beside(file: Path, home: Path) -> dict[str, Path]:
    """Returns a Python, YAML or shell file, the modules of `home` that it imports, and the files
    that its texts name, keyed by path; the imports and texts of those files are followed as
    well."""
    return _followed(_modules(file), home)


def command_files(text: str) -> dict[str, Path]:
    """Returns the programs, modules and data that a shell's command names, with what these name."""
    return _followed(_named_in_command(text, Path.cwd()), Path.cwd())


def _named_in_command(text: str, folder: Path) -> Iterator[Path]:
    words = words_of_command(text)
    yield from named_in_words(words, (folder, Path.cwd()))
    for option, module in pairwise(words):
        file = _beside(module, Path.cwd()) if option == "-m" else None
        if file is not None:
            yield from _modules(file)


def files_of(tree: ast.Module, file: Path) -> dict[str, Path]:
    """Returns the modules and files that a part of a Python file names, as in `files_beside`."""
    return _followed(_references(_names(tree), file, file.parent), file.parent)


def _followed(files: Iterable[Path], home: Path) -> dict[str, Path]:
    found: set[Path] = set()
    waiting = list(files)
    while waiting:
        current = waiting.pop()
        if current in found:
            continue
        found.add(current)
        if current.suffix == CODE:
            references = _references(_names_in(_text(current)), current, home)
            waiting += [path for path in references if path not in found]
        elif current.suffix in YAML:
            waiting += named_in_yaml(current)
        elif current.suffix == SHELL:
            waiting += _named_in_command(current.read_text(errors="replace"), current.parent)
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


class _Names(NamedTuple):
    """What a file of code names: texts that may be files, and what it may load as modules, each
    with the level of its import, 0 for one from the root."""

    files: tuple[str, ...]
    modules: tuple[tuple[int, str], ...]


def _references(names: _Names, file: Path, home: Path) -> Iterator[Path]:
    """Yields the files of the modules of `home` that a file with these names imports, and the files
    that its texts name."""
    yield from named_in_code(names.files, (file.parent, home, Path.cwd()))
    for level, name in names.modules:
        if level <= len(file.parents):
            folder = file.parents[level - 1] if level else home
            if (beside := _beside(name, folder)) is not None:
                yield from _modules(beside)


def _names(tree: ast.Module) -> _Names:
    imports = dict.fromkeys(found for node in ast.walk(tree) for found in _imported(node))
    return _Names(file_names(tree), tuple(imports))


@lru_cache(maxsize=2048)
def _names_in(text: str) -> _Names:
    """The names in a file's text, which several settings and runs of one process ask for."""
    return _names(_tree(text))


def _imported(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Yields the names that a statement or call may load as modules, each with its level."""
    if isinstance(node, ast.Import):
        yield from ((0, alias.name) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        if node.module:
            yield node.level, node.module
        above = f"{node.module}." if node.module else ""
        yield from ((node.level, f"{above}{alias.name}") for alias in node.names)
    elif isinstance(node, ast.Call) and name_of_node(node.func) in _IMPORTERS and node.args:
        name = text_of_node(node.args[0]) or ""
        yield len(name) - len(name.lstrip(".")), name.lstrip(".")


def parsed(file: Path) -> ast.Module:
    """The syntax tree of a file; empty if the file cannot be read, as an import of it will say."""
    return _tree(_text(file))


def _text(file: Path) -> str:
    try:
        with tokenize.open(file) as opened:
            return opened.read()
    except (OSError, SyntaxError, ValueError):
        return ""


def _tree(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):
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
