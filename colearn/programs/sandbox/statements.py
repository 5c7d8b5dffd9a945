"""Splits test code into statements, each of which may be one test."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from colearn.errors import ConfigError

from .bare import BareAsserts


@dataclass(frozen=True, slots=True, kw_only=True)
class Statements:
    """The statements that the checker runs, in order."""

    sources: tuple[tuple[int | None, str], ...]
    """Test index and source; the index is None for preparation."""
    names: tuple[str, ...]
    """Names by which the tests call the entry point."""
    bare: tuple[bool, ...]
    """Whether each test is a bare assert; any other test may leave state for later tests."""

    @property
    def tests(self) -> int:
        return sum(number is not None for number, _ in self.sources)


def take_apart(
    tests: str | Sequence[str],
    entry_point: str,
    *,
    prompt: str = "",
) -> Statements:
    """Split tests: each string of a sequence is one test; in a single string, each statement with
    an `assert` is one test.

    prompt: as in `run_tests`; it decides with the tests which asserts are bare.

    A single string may define `check(candidate)`, as in HumanEval; then the statements in the body
    of `check` are split. An assert on constants only (`assert True`) is not a test, since it cannot
    fail.

    Errors: ConfigError if the code does not parse or contains no test.
    """
    if isinstance(tests, str):
        trees = [_parsed(tests, "tests")]
        pieces, parameter = _of_one_text(trees[0])
    else:
        trees = [_parsed(test, f"tests[{number}]") for number, test in enumerate(tests)]
        pieces = [(True, *pair) for pair in zip(tests, (tree.body for tree in trees), strict=True)]
        parameter = "candidate"
    names = (entry_point, parameter)
    asserts = BareAsserts([*trees, _parsed(prompt, "prompt")], names)
    sources: list[tuple[int | None, str]] = []
    bare: list[bool] = []
    for is_test, source, body in pieces:
        sources.append((len(bare) if is_test else None, source))
        if is_test:
            bare.append(len(body) == 1 and asserts.is_bare(body[0]))
    if not bare:
        raise ConfigError("tests: no assert depends on the program; give at least one")
    return Statements(sources=tuple(sources), names=names, bare=tuple(bare))


_Pieces = list[tuple[bool, str, list[ast.stmt]]]
"""For each piece: whether it is a test, its source, its statements."""


def _of_one_text(tree: ast.Module) -> tuple[_Pieces, str]:
    body: list[ast.stmt] = []
    parameter = "candidate"
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef) and statement.name == "check":
            if len(statement.args.args) != 1:
                raise ConfigError("tests: check must take one argument, the candidate")
            parameter = statement.args.args[0].arg
            body += statement.body
        elif not _calls_check(statement):
            body.append(statement)
    return [
        (_is_test(statement), ast.unparse(statement), [statement]) for statement in body
    ], parameter


def _parsed(text: str, field: str) -> ast.Module:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ConfigError(f"{field}: not valid Python ({error}); correct the test code") from None


def _calls_check(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Call)
        and isinstance(statement.value.func, ast.Name)
        and statement.value.func.id == "check"
    )


def _is_test(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return False  # a helper: its asserts run when it is called
    nodes = list(ast.walk(statement.test if isinstance(statement, ast.Assert) else statement))
    asserts = isinstance(statement, ast.Assert) or any(isinstance(n, ast.Assert) for n in nodes)
    return asserts and any(isinstance(node, ast.Name) for node in nodes)
