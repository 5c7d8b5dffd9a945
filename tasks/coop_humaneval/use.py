"""Analyses the main function's syntax tree: how it uses the auxiliary function."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from .parse import AUX


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    calls: bool = False
    """Whether `aux` is called, or passed to a function that is called, as in `map(aux, values)`."""
    wrapper: bool = False
    """Whether the function only calls aux: `return ...aux(...)...`, or `v = aux(...)` and
    `return v`."""
    ignored: bool = False
    """Whether the function calls aux but reads no result: each call is a separate statement, or its
    result is assigned to names that are never read."""


def find_use(function: ast.FunctionDef) -> Use:
    """The use of `aux`, found statically: an unreachable call counts. If the function binds the
    name `aux` itself, its calls do not count."""
    nodes = list(ast.walk(function))
    if any(_binds(node) for node in nodes):
        return Use()
    parents = {child: node for node in nodes for child in ast.iter_child_nodes(node)}
    calls = [call for node in nodes if (call := _call(node, parents)) is not None]
    read_names = {
        node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    return Use(
        calls=bool(calls),
        wrapper=bool(calls) and _is_wrapper(function, calls),
        ignored=bool(calls) and all(_is_ignored(call, parents, read_names) for call in calls),
    )


def _binds(node: ast.AST) -> bool:
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
            return name == AUX
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return name == AUX
        case ast.ClassDef(name=name) | ast.ExceptHandler(name=name):
            return name == AUX
        case ast.MatchAs(name=name) | ast.MatchStar(name=name) | ast.MatchMapping(rest=name):
            return name == AUX
        case ast.alias(name=name, asname=alias):
            return AUX in (alias, name if alias is None else None)
        case _:
            return False


def _call(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> ast.Call | None:
    """The call that runs `aux`, if the node is the name `aux` in a call."""
    if not (isinstance(node, ast.Name) and node.id == AUX):
        return None
    above = parents[node]
    if isinstance(above, ast.keyword):
        above = parents[above]
    return above if isinstance(above, ast.Call) else None


def _is_wrapper(function: ast.FunctionDef, calls: list[ast.Call]) -> bool:
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    match body:
        case [ast.Return(value=ast.expr() as value)]:
            return any(node in calls for node in ast.walk(value))
        case [
            ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call),
            ast.Return(value=ast.Name(id=other)),
        ]:
            return name == other and call in calls
        case _:
            return False


def _is_ignored(call: ast.Call, parents: dict[ast.AST, ast.AST], read_names: set[str]) -> bool:
    above = parents[call]
    while isinstance(above, ast.expr) and not isinstance(above, ast.Call | ast.NamedExpr):
        above = parents[above]
    match above:
        case ast.Expr():
            return True
        case ast.Assign(targets=targets):
            return all(_unread(target, read_names) for target in targets)
        case ast.AnnAssign(target=target) | ast.AugAssign(target=target):
            return _unread(target, read_names)
        case _:
            return False


def _unread(target: ast.expr, read_names: set[str]) -> bool:
    match target:
        case ast.Name(id=name):
            return name not in read_names
        case ast.Starred(value=value):
            return _unread(value, read_names)
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return all(_unread(part, read_names) for part in parts)
        case _:
            return False
