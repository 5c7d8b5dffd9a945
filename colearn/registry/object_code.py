"""Finds the code behind objects that a program passed to its runs, and digests of its source."""

from __future__ import annotations

import ast
import hashlib
import inspect
import json
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import is_dataclass
from functools import partial
from pathlib import Path, PurePath
from types import FunctionType, MethodType, ModuleType
from typing import Any

from .code_files import code_files, files_of, is_installed, parsed

SCRIPT = "__main__"
"""Module of what the program itself defines, and the name of an entry beside its digests."""
_NOTEBOOK = "notebook.py"
"""A notebook's cells import modules as a file of the current folder does."""
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_BLOCKS = (ast.If, ast.Try, ast.ExceptHandler, ast.With)


def definition_digest(target: str, files: Mapping[str, Path]) -> dict[str, str]:
    """Returns the digest of the source of the function or class that `module:name` names, keyed by
    its name; empty if it is not defined at the top of its module's file. `files`: the `code_files`
    of the module."""
    module, _, name = target.partition(":")
    for file in files.values():
        if file.stem == module.rpartition(".")[2]:
            for node in parsed(file).body:
                if isinstance(node, _DEFINITIONS) and node.name == name:
                    return {name: _dumped(node)}
    return {}


def object_digest(value: Any) -> dict[str, str]:
    """Returns the digests of the source of a function, of a class, or of an object's class, and of
    the functions, classes and plain arguments that the object holds, keyed by name; empty for one
    that has no source in Python. They are the digests that `definition_digest` returns for the same
    source, whichever module has it. Of the program's own script, what the source uses is included.
    """
    digests: dict[str, str] = {}
    for code in _code(value):
        if (node := _definition(code)) is not None:
            digests.setdefault(getattr(node, "name", code.__name__), _dumped(node))
            if code.__module__ == SCRIPT:
                digests[SCRIPT] = ""
                for name, statement in _used(node, _script_tree()):
                    digests.setdefault(name, _dumped(statement))
    arguments = [plain for part in _parts(value, set()) if (plain := _arguments(part))]
    if arguments:
        text = json.dumps(arguments, sort_keys=True, default=str)
        digests["arguments"] = hashlib.sha256(text.encode()).hexdigest()
    return digests


def object_files(value: Any) -> dict[str, Path]:
    """Returns the files of the user's modules that hold the code of `object_digest`, with the
    modules and files that they name (`code_files`). Of the program's own script, only what the code
    uses is included."""
    files: dict[str, Path] = {}
    for code in _code(value):
        if code.__module__ != SCRIPT:
            files |= {} if is_installed(code.__module__) else code_files(code.__module__)
        elif (node := _definition(code)) is not None:
            used = [node, *(statement for _, statement in _used(node, _script_tree()))]
            files |= files_of(ast.Module(used, []), _script() or Path.cwd() / _NOTEBOOK)
    return files


def _code(value: Any) -> Iterator[Any]:
    """Yields the functions and classes of a program that an object consists of or holds."""
    for part in _parts(value, set()):
        code = part if inspect.isroutine(part) or isinstance(part, type) else type(part)
        if str(code.__module__).partition(".")[0] not in ("builtins", "colearn", "functools"):
            yield code


def _parts(value: Any, seen: set[int]) -> Iterator[Any]:
    """Yields an object and the functions, classes and callable objects that it holds."""
    if id(value) in seen:
        return
    seen.add(id(value))
    yield value
    held: Iterable[Any]
    if isinstance(value, partial):
        held = (value.func, *value.args, *value.keywords.values())
    elif isinstance(value, MethodType):
        yield from _parts(value.__self__, seen)
        held = (value.__func__,)
    else:
        held = _held(value)
    for part in held:
        if callable(part) or is_dataclass(part) or isinstance(part, partial | MethodType):
            yield from _parts(part, seen)


def _arguments(value: Any) -> dict[str, Any]:
    """The plain values with which a function or an object was made: of a partial function, of a
    closure, of defaults, and of the attributes that are named as the parameters of the object's
    class. Other attributes, such as counters, may change while a run uses the object."""
    named: dict[str, Any] = {}
    if isinstance(value, partial):
        named = {**{str(number): a for number, a in enumerate(value.args)}, **value.keywords}
    elif isinstance(value, FunctionType):
        for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
            if _is_filled(cell) and not isinstance(cell.cell_contents, list | dict):
                named[name] = cell.cell_contents
        named |= {"defaults": [*filter(_is_plain, value.__defaults__ or ())]}
        named |= value.__kwdefaults__ or {}
    elif not (inspect.isroutine(value) or isinstance(value, type)):
        for name in _parameters(type(value)):
            for kept in (name, f"_{name}"):
                if hasattr(value, kept):
                    named[kept] = getattr(value, kept)
    return {name: plain for name, plain in named.items() if _is_plain(plain) and plain != []}


def _parameters(cls: type) -> Iterable[str]:
    try:
        return inspect.signature(cls).parameters
    except (TypeError, ValueError):  # a class in C
        return ()


def _held(value: Any) -> Iterator[Any]:
    """Yields what a function's closure, a decorator's result or an object's attributes hold."""
    if isinstance(value, FunctionType):
        yield from (cell.cell_contents for cell in value.__closure__ or () if _is_filled(cell))
    if isinstance(value, type) or not hasattr(value, "__dict__"):
        return
    for part in vars(value).values():
        yield from part if isinstance(part, list | tuple) else (part,)


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:  # a variable that is bound later
        return False


def _is_plain(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(isinstance(name, str) for name in value) and all(map(_is_plain, value.values()))
    if isinstance(value, tuple | list):
        return all(map(_is_plain, value))
    return isinstance(value, str | int | float | bool | PurePath | None)


def _definition(code: Any) -> ast.stmt | None:
    """The statement that defines a function or a class; of a lambda, the lambdas of its line."""
    if isinstance(code, type) and code.__module__ == SCRIPT and _script() is None:
        bases: list[ast.expr] = [ast.Name(base.__name__, ast.Load()) for base in code.__bases__]
        return ast.ClassDef(code.__name__, bases, [], [*_live(vars(code))], [])
    try:
        if getattr(code, "__name__", "") == (lambda: None).__name__:
            return _lambda(code)
        (node,) = ast.parse(textwrap.dedent(inspect.getsource(code))).body
    except (OSError, TypeError, SyntaxError, ValueError):  # code that was typed in
        return None
    return node if isinstance(node, _DEFINITIONS) else None


def _lambda(code: FunctionType) -> ast.stmt:
    tree = ast.parse("".join(inspect.findsource(code)[0]))
    line = code.__code__.co_firstlineno
    lambdas: list[ast.expr] = [
        node for node in ast.walk(tree) if isinstance(node, ast.Lambda) and node.lineno == line
    ]
    return ast.Expr(ast.Tuple(lambdas, ast.Load()))


def _script() -> Path | None:
    file = getattr(sys.modules.get(SCRIPT), "__file__", None)
    return None if file is None else Path(file).absolute()


def _script_tree() -> ast.Module:
    """The program's script; of a notebook, which is no file, its names as they are now."""
    file = _script()
    return ast.Module([*_live(vars(sys.modules[SCRIPT]))], []) if file is None else parsed(file)


def _live(names: Mapping[str, Any]) -> Iterator[ast.stmt]:
    """Yields statements that bind names to their functions, classes, modules and plain values. What
    a run may change in place, such as a list of its calls, is left out."""
    for name, value in list(names.items()):
        module = getattr(value, "__module__", None)
        if isinstance(value, FunctionType | type) and module == SCRIPT:
            node = _definition(value)
            if isinstance(node, ast.Expr):  # a lambda
                node = ast.Assign([ast.Name(name, ast.Store())], node.value)
            yield from filter(None, [node])
        elif isinstance(value, FunctionType | type) and value.__qualname__.isidentifier():
            yield from ast.parse(f"from {module} import {value.__qualname__} as {name}").body
        elif isinstance(value, ModuleType):
            yield from ast.parse(f"import {value.__name__} as {name}").body
        elif _is_plain(value) and not isinstance(value, list | Mapping) and name[:2] != "__":
            yield from ast.parse(f"{name} = {value!r}").body


def _used(node: ast.AST, tree: ast.Module) -> list[tuple[str, ast.stmt]]:
    """The definitions, assignments and imports at the top of a script that a definition uses,
    directly or through others, by name."""
    bound: dict[str, list[ast.stmt]] = {}
    for statement in _statements(tree):
        for name in _names(statement):
            bound.setdefault(name, []).append(statement)
    used: dict[str, list[ast.stmt]] = {}
    waiting: list[ast.AST] = [node]
    while waiting:
        for part in ast.walk(waiting.pop()):
            if isinstance(part, ast.Name) and part.id in bound and part.id not in used:
                used[part.id] = bound[part.id]
                waiting += bound[part.id]
    return [(name, statement) for name in sorted(used) for statement in used[name]]


def _statements(block: ast.AST) -> Iterator[ast.stmt]:
    for child in ast.iter_child_nodes(block):
        if isinstance(child, _BLOCKS):
            yield from _statements(child)
        elif isinstance(child, ast.stmt):
            yield child


def _names(statement: ast.stmt) -> Iterator[str]:
    """Yields the names that a statement binds."""
    if isinstance(statement, _DEFINITIONS):
        yield statement.name
    elif isinstance(statement, ast.Import | ast.ImportFrom):
        yield from (alias.asname or alias.name.partition(".")[0] for alias in statement.names)
    elif isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign):
        for part in ast.walk(statement):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                yield part.id


def _dumped(node: ast.AST) -> str:
    return hashlib.sha256(ast.dump(node).encode()).hexdigest()
