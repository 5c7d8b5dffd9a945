"""Counts how much code a reader has to hold: `python benchmarks/structure.py [--each]`.

A line tracer runs over the first iteration of CoLLM-CC on the quickstart, in all threads. Files on
the path are those with functions that run in the iteration up to its first backward pass, or that
are on the call stack from the command to the iteration. Files of tasks and algorithms, and code
that only loads configs or models or evaluates, are not counted. A statement that runs counts with
all its lines, and so do the fields of classes and the constants of a file on the path. The other
counts are read from the source. Lines of code are lines without blank lines, comments, docstrings
and imports.
"""

from __future__ import annotations

import ast
import io
import sys
import tempfile
import threading
import tokenize
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import colearn
from colearn.entry.cli.train import train
from colearn.training.loop import Experiment

PACKAGE = Path(colearn.__file__).parent
ROOT = PACKAGE.parent
LINKED = {"algorithms", "configs", "tasks"}
"""Links in `colearn/` to folders at the top of the repository."""
GRADIENT = "backward"
FIELDS = (ast.Assign, ast.AnnAssign, ast.ClassDef)
LAYOUT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}


class Traced(BaseException):
    """Raised after the first iteration. No handler of errors catches it."""


class Trace:
    """A tracer that records files on the path and executed lines from the first iteration on."""

    def __init__(self) -> None:
        self.files: set[Path] = set()
        """Files on the path, up to the first backward pass."""
        self.executed: defaultdict[Path, set[int]] = defaultdict(set)
        """Line numbers that ran in the iteration, by file."""
        self._recording = False
        self._gradient = False
        self._importing: Counter[int] = Counter()
        """Number of modules that each thread is importing."""

    def begin(self) -> None:
        """Start recording; the files on the current call stack are on the path."""
        self._recording = True
        frame: Any = sys._getframe()
        while (frame := frame.f_back) is not None:
            self._add(frame.f_code.co_filename)

    def __call__(self, frame: Any, event: str, _: object) -> Callable[..., Any] | None:
        code, thread = frame.f_code, threading.get_ident()
        if code.co_name == "<module>":
            self._importing[thread] += 1
            return self._module
        if not self._recording or self._importing[thread]:
            return None
        if code.co_name == GRADIENT and "/torch/" in code.co_filename:
            self._gradient = True
        if not self._own(code.co_filename):
            return None
        self._add(code.co_filename)
        lines = self.executed[Path(code.co_filename)]
        lines.add(code.co_firstlineno)

        def line(frame: Any, event: str, _: object) -> Callable[..., Any]:
            if event == "line":
                lines.add(frame.f_lineno)
            return line

        return line

    def _module(self, frame: Any, event: str, _: object) -> Callable[..., Any]:
        if event == "return":
            self._importing[threading.get_ident()] -= 1
        return self._module

    def _own(self, name: str) -> bool:
        return name.startswith(f"{PACKAGE}/") and (
            Path(name).relative_to(PACKAGE).parts[0] not in LINKED
        )

    def _add(self, name: str) -> None:
        if not self._gradient and self._own(name):
            self.files.add(Path(name))


def trace() -> Trace:
    """Trace the first iteration of CoLLM-CC."""
    found, iteration = Trace(), Experiment._iteration
    sets = ["run.device=cpu", "algorithm.name=collm_cc", "evaluation.episodes=1"]

    def traced(self: Experiment) -> None:
        found.begin()
        iteration(self)
        raise Traced

    Experiment._iteration = traced
    threading.settrace(found)
    sys.settrace(found)
    try:
        with tempfile.TemporaryDirectory() as folder:
            train("quickstart", out=Path(folder) / "run", sets=sets)
    except Traced:
        pass
    finally:
        sys.settrace(None)
        threading.settrace(None)
        Experiment._iteration = iteration
    return found


def sources() -> list[Path]:
    """The library's files, without tasks and algorithms."""
    files = (file for file in PACKAGE.rglob("*.py"))
    return sorted(f for f in files if f.relative_to(PACKAGE).parts[0] not in LINKED)


def code_lines(text: str) -> set[int]:
    """Numbers of the lines that are not blank, comment, docstring or import."""
    numbers: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in LAYOUT and token.string:
            numbers.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import | ast.ImportFrom) or (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        ):
            numbers.difference_update(range(node.lineno, node.end_lineno + 1))
    return numbers


def executed_lines(text: str, lines: set[int]) -> int:
    """Number of lines of code that ran, given the line numbers that a tracer reported."""
    ran: set[int] = set()
    tree = ast.parse(text)
    scopes: list[ast.Module | ast.ClassDef] = [
        tree,
        *(node for node in tree.body if isinstance(node, ast.ClassDef)),
    ]
    constants = {id(node) for scope in scopes for node in scope.body if isinstance(node, FIELDS)}
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            decorators = [one.lineno for one in getattr(node, "decorator_list", [])]
            body = getattr(node, "body", None)
            last = max(node.lineno, body[0].lineno - 1) if body else node.end_lineno
            span = range(min([node.lineno, *decorators]), last + 1)
            if id(node) in constants or not lines.isdisjoint(span):
                ran.update(span)
    return len(ran & code_lines(text))


def total(files: Iterable[Path]) -> int:
    """Number of lines of all files."""
    return sum(len(file.read_text().splitlines()) for file in files)


def main() -> None:
    found = trace()
    tops = [p.name for p in PACKAGE.iterdir() if p.suffix in ("", ".py") and p.name[0] != "_"]
    named = {
        "files from command to gradient": sorted(str(f.relative_to(PACKAGE)) for f in found.files),
        "folders and modules at the top of colearn/": sorted(set(tops) - LINKED - {"py.typed"}),
    }
    counted = {
        "lines of the files from command to gradient": total(found.files),
        "lines of code of these files that one iteration executes": sum(
            executed_lines(file.read_text(), found.executed[file]) for file in found.files
        ),
        "lines in colearn/, without tasks and algorithms": total(sources()),
        "lines of code in colearn/, without tasks and algorithms": sum(
            len(code_lines(file.read_text())) for file in sources()
        ),
        "lines in tests/": total((ROOT / "tests").rglob("*.py")),
        "lines in benchmarks/": total((ROOT / "benchmarks").rglob("*.py")),
    }
    for name, entries in named.items():
        print(f"{len(entries):6,}  {name}")
        if "--each" in sys.argv:
            print("".join(f"          {entry}\n" for entry in entries), end="")
    for name, number in counted.items():
        print(f"{number:6,}  {name}")


if __name__ == "__main__":
    main()
