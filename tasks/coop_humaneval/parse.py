"""Extracts code from an answer with `ast`: drops fences and prose, and executes nothing."""

from __future__ import annotations

import ast
import re
import textwrap
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

from colearn.text.reasoning import without_reasoning

AUX = "aux"
LONGEST = 10_000
"""Maximum number of characters of an answer; a longer answer counts as a syntax error."""
_MOST_ATTEMPTS = 200
"""Maximum number of attempts to parse parts of one answer; each attempt also copies the rest of
it."""
_MOST_READINGS = 10
"""Maximum average number of times that the parser reads a character of an answer. The limit makes
parse time linear in the length of the answer. Ordinary code is read twice: up to its first error,
and again without the part that contains this error."""

_FENCED = re.compile(r"^[ \t]*```[^\n]*\n(.*?)(?:^[ \t]*```|\Z)", re.M | re.S)
_DEF = re.compile(r"(?:async[ \t]+)?def\b")
_OPENS = re.compile(r"(?:(?:async[ \t]+)?def|class|from|import)\b|@|[^\W\d]\w*[ \t]*(?::[^\n=]*)?=")
_KEPT = (
    ast.Import,
    ast.ImportFrom,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.Assign,
    ast.AnnAssign,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedCode:
    code: str
    """The parts of an answer that enter the joint program."""
    function: ast.FunctionDef | None
    """The requested function, if it parses."""
    defined: bool
    """Whether the answer has a function of the requested name with a return statement, even if it
    does not parse."""
    error: str
    """The first syntax error, with its line number counted from the start of the definition that
    contains the error; '' if there is no error."""


@dataclass(frozen=True, slots=True)
class _Piece:
    lines: tuple[str, ...]
    tree: ast.Module | None
    error: str


def read_answer(
    text: str, name: str, *, reserved: frozenset[str] = frozenset(), alone: bool = False
) -> ParsedCode:
    """Find the code in an answer that should define the function `name`.

    If the answer has fenced blocks, only these are read, else the whole text. Imports, definitions
    and assignments at the left margin are kept; other statements and prose are dropped. A statement
    that binds a name in `reserved` is dropped too: the name belongs to another agent. alone: keep
    only the function.
    """
    text = without_reasoning(text)
    if len(text) > LONGEST:
        defined = _says(text, name)
        error = f"more than {LONGEST} characters"
        return ParsedCode(code="", function=None, defined=defined, error=error)
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    fenced = _FENCED.findall(text)
    lines = textwrap.dedent("\n".join(fenced) if fenced else text).split("\n")
    function, code, broken = None, [], []
    for piece in _pieces(lines):
        if piece.tree is None:
            broken.append(piece)
            continue
        for statement in _kept(piece.tree, reserved):
            is_target = isinstance(statement, ast.FunctionDef) and statement.name == name
            if is_target:
                assert isinstance(statement, ast.FunctionDef)
                function = statement
            if is_target or not alone:
                first, last = _extent(statement)
                code.append("\n".join(piece.lines[first - 1 : last]))
    if alone:
        broken = [piece for piece in broken if _says("\n".join(piece.lines), name)]
        code = code[-1:]
    defined = function is not None and _returns(function)
    return ParsedCode(
        code="\n\n".join(code),
        function=function,
        defined=defined or any(_says("\n".join(piece.lines), name) for piece in broken),
        error=broken[0].error if broken else "",
    )


def parse_quietly(source: str) -> ast.Module:
    """Parses as `ast.parse` does, but without warnings and with SyntaxError as the only error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(source)
        except (ValueError, RecursionError, MemoryError) as error:
            raise SyntaxError(str(error) or "too deeply nested") from None


def surroundings(prompt: str, entry_point: str) -> tuple[ast.FunctionDef | None, str]:
    """Returns the entry point of a problem's prompt, and the prompt's other statements: imports and
    helpers. Errors: SyntaxError if the prompt does not parse."""
    function, others = None, []
    lines = prompt.split("\n")
    for statement in parse_quietly(prompt).body:
        if isinstance(statement, ast.FunctionDef) and statement.name == entry_point:
            function = statement
        else:
            first, last = _extent(statement)
            others.append("\n".join(lines[first - 1 : last]))
    return function, "\n".join(others)


def _pieces(lines: list[str]) -> Iterator[_Piece]:
    """Returns the longest runs of consecutive lines that parse, each starting at a line that may
    open a statement, and the definitions that do not parse."""
    attempts = 0
    budget = _MOST_READINGS * sum(len(text) + 1 for text in lines)
    line = 0
    while line < len(lines) and attempts < _MOST_ATTEMPTS and budget > 0:
        if not _OPENS.match(lines[line]):
            line += 1
            continue
        end, tree, error = len(lines), None, ""
        while tree is None and attempts < _MOST_ATTEMPTS and budget > 0:
            attempts += 1
            read_end = end
            try:
                tree = parse_quietly("\n".join(lines[line:end]))
            except SyntaxError as failure:
                error = f"line {failure.lineno or 1}, column {failure.offset or 1}: {failure.msg}"
                # the parser stops there
                read_end = min(end, line + (failure.lineno or 1))
                earlier = _margin_before(lines, line, read_end - 1)
                if earlier is None:
                    break
                end = earlier
            finally:
                budget -= sum(len(text) + 1 for text in lines[line:read_end])
        if tree is not None:
            yield _Piece(tuple(lines[line:end]), tree, "")
            line = end
            continue
        rest = range(line + 1, len(lines))
        after = next((k for k in rest if _at_margin(lines[k])), len(lines))
        if _DEF.match(lines[line]):
            yield _Piece(tuple(lines[line:after]), None, error)
        line = after


def _margin_before(lines: list[str], line: int, last: int) -> int | None:
    """The last line in (line, last] that begins at the left margin."""
    return next((k for k in range(last, line, -1) if _at_margin(lines[k])), None)


def _at_margin(line: str) -> bool:
    return line[:1] not in ("", " ", "\t")


def _kept(tree: ast.Module, reserved: frozenset[str]) -> list[ast.stmt]:
    """The statements to keep. A statement that shares a line with a dropped one is dropped as
    well."""
    stays = [isinstance(node, _KEPT) and not reserved & _bound(node) for node in tree.body]
    dropped_lines = {
        line
        for node, keep in zip(tree.body, stays, strict=True)
        if not keep
        for line in range(_extent(node)[0], _extent(node)[1] + 1)
    }
    return [
        node
        for node, keep in zip(tree.body, stays, strict=True)
        if keep and not dropped_lines & set(range(_extent(node)[0], _extent(node)[1] + 1))
    ]


def _bound(statement: ast.stmt) -> set[str]:
    """The module-level names that a statement binds."""
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {alias.asname or alias.name.split(".")[0] for alias in statement.names}
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        global_names = {
            name
            for node in ast.walk(statement)
            if isinstance(node, ast.Global)
            for name in node.names
        }
        return {statement.name, *global_names}
    return {
        node.id
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def _extent(statement: ast.stmt) -> tuple[int, int]:
    """First and last line of a statement, decorators included."""
    decorators = getattr(statement, "decorator_list", [])
    first = min([statement.lineno, *(decorator.lineno for decorator in decorators)])
    return first, statement.end_lineno or statement.lineno


def _returns(function: ast.FunctionDef) -> bool:
    """Whether the function itself, not a nested function, has a return statement."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Return):
            return True
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            waiting += ast.iter_child_nodes(node)
    return False


def _says(text: str, name: str) -> bool:
    match = re.search(rf"^def[ \t]+{re.escape(name)}[ \t]*\(", text, re.M)
    return match is not None and re.search(r"\breturn\b", text[match.end() :]) is not None
