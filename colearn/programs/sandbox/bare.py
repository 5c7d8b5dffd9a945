"""Bare asserts: detection of tests without side effects in the tests' process."""

from __future__ import annotations

import ast
import builtins
from collections import Counter
from collections.abc import Iterable

_QUIET_BUILTINS = set(dir(builtins)) - {
    *("__import__", "breakpoint", "compile", "delattr", "eval", "exec", "globals", "input"),
    *("locals", "next", "open", "setattr", "vars"),
}
_IMMUTABLE = (str, bytes, int, float, complex, tuple, frozenset, range)
_METHODS = {name for kind in _IMMUTABLE for name in dir(kind) if not name.startswith("_")}
_METHODS |= {"get", "items", "keys", "values"}
"""Names of methods without side effects; other methods may change their object."""
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class BareAsserts:
    """Detects asserts that bind no name and call only functions without side effects.

    The following count as free of side effects: the program's functions, most builtins, imported
    names, and methods of immutable values. A helper also counts if all functions that it calls
    count. Every other function counts as having side effects.

    trees: syntax trees of the trusted code: the tests and the prompt.
    program: names of the program's functions, whose side effects stay in another process.
    """

    def __init__(self, trees: Iterable[ast.Module], program: Iterable[str]) -> None:
        nodes = [node for tree in trees for node in ast.walk(tree)]
        helpers = [node for node in nodes if isinstance(node, _DEFINITIONS)]
        bound = Counter(helper.name for helper in helpers)
        bound.update(
            node.id
            for node in nodes
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
        )
        self._helpers = {helper.name for helper in helpers}
        self._imported = {
            (alias.asname or alias.name).partition(".")[0]
            for node in nodes
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        } - set(bound)
        self._quiet = (_QUIET_BUILTINS - set(bound)) | self._imported
        self._quiet |= set(program)
        candidates = {
            helper.name: helper
            for helper in helpers
            if isinstance(helper, ast.FunctionDef)
            and not helper.decorator_list
            and bound[helper.name] == 1
            and helper.name not in self._quiet
        }
        while quiet := {name for name, helper in candidates.items() if self._all(helper.body)}:
            self._quiet |= quiet
            candidates = {name: helper for name, helper in candidates.items() if name not in quiet}

    def is_bare(self, statement: ast.stmt) -> bool:
        return isinstance(statement, ast.Assert) and self._all([statement])

    def _all(self, statements: Iterable[ast.stmt]) -> bool:
        return all(self._changes_nothing(node) for top in statements for node in ast.walk(top))

    def _changes_nothing(self, node: ast.AST) -> bool:
        match node:
            case ast.NamedExpr() | ast.AugAssign() | ast.Global() | ast.Nonlocal():
                return False
            case ast.Import() | ast.ImportFrom():
                return False
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                return False
            case ast.Name(id=name):  # it may be passed to another function
                return name not in self._helpers or name in self._quiet
            case ast.Subscript(ctx=context):
                return isinstance(context, ast.Load)
            case ast.Attribute(ctx=context, attr=name):
                if not isinstance(context, ast.Load):
                    return False
                return name in _METHODS or _root(node) in self._imported
            case ast.Call(func=ast.Name(id=name)):
                return name in self._quiet
            case ast.Call(func=function):
                return isinstance(function, ast.Attribute)
        return True


def _root(node: ast.expr) -> str:
    """The first name of a dotted name, such as `os` of `os.path.join`; '' for other expressions."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
