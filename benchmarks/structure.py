"""Counts that say how much a reader has to hold: `python benchmarks/structure.py [--each]`.

One iteration of CoLLM-CC on the quickstart runs under a profiler, to its first gradient. Counted
are the files of colearn, without the task's, on the call stack from the command to the iteration
and of the functions that run in it: what loads a config or a model, or evaluates, is another way.
Of the record types (dataclasses) of which an instance is made in it, those are counted that one
action passes through: an instance holds the longest sampled action or the observation before it, by
object, text or ids, in its own fields or in those of a record in it. Settings, events and counters
hold none. All threads are traced, the event loop's and the engines' among them. The other
counts are read from the source: public class names with two homes, members of `DecPOMDP`, forms of
a config, properties that only pass on a part of what their object holds, entries at the top of
`colearn/`, and lines of Python.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import sys
import tempfile
import threading
from _thread import start_new_thread
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

import colearn
from colearn.cli.train import train
from colearn.contract import DecPOMDP
from colearn.types import Action, Observation, Tree

PACKAGE = Path(colearn.__file__).parent
LINKED = {"algorithms", "configs", "tasks"}
"""Links in `colearn/` to folders at the top of the repository."""
CONFIG_FOLDERS = ("config", "experiment", "comparison", "trainer", "export")
"""Where a config is resolved and read."""
FORMS = ("Config", "ResolvedRun")
ACTION_FOLDERS = ("agents", "contract", "experiment", "generate", "learn", "packing", "rollout")
ITERATION, GRADIENT = "Experiment._iteration", "backward"


class Traced(BaseException):
    """Raised at the first gradient; no handler of errors catches it."""


class Trace:
    """A profiler that notes files and made records, from the first iteration on."""

    def __init__(self) -> None:
        self.files: set[Path] = set()
        self.made: list[Any] = []
        self.recording = False
        self.importing: Counter[int] = Counter()
        """Modules that each thread is importing: what they call is not on the way."""

    def __call__(self, frame: Any, event: str, _: object) -> None:
        code = frame.f_code
        thread = threading.get_ident()
        if code.co_name == "<module>" and event in ("call", "return"):
            self.importing[thread] += 1 if event == "call" else -1
        if event != "call" or self.importing[thread]:
            return
        if code.co_qualname == ITERATION:
            self.recording = True
            while (frame := frame.f_back) is not None:
                self._note_file(frame.f_code.co_filename)
        if not self.recording:
            return
        if code.co_name == GRADIENT and "torch" in code.co_filename:
            sys.setprofile(None)
            raise Traced
        if code.co_filename == "<string>" and code.co_name == "__init__":
            self._note(frame.f_locals.get("self"))
        self._note_file(code.co_filename)

    @property
    def records(self) -> set[str]:
        """The record types that the longest action passes through."""
        trees = [one for one in self.made if isinstance(one, Tree)]
        edges = [
            (tree.nodes[node.parent].observations[agent], action)
            for tree in trees
            for node in tree.nodes
            if node.parent is not None
            for agent, action in node.actions.items()
        ]
        carries = Carries(*max(edges, key=lambda edge: len(edge[1].tokens)))
        return {f"{type(one).__module__}.{type(one).__name__}" for one in self.made if carries(one)}

    def _note(self, made: Any) -> None:
        kind = type(made)
        _, _, place = kind.__module__.partition("colearn.")
        if dataclasses.is_dataclass(kind) and place.split(".")[0] in (*ACTION_FOLDERS, "types"):
            self.made.append(made)

    def _note_file(self, name: str) -> None:
        if name.startswith(str(PACKAGE)) and Path(name).relative_to(PACKAGE).parts[0] not in LINKED:
            self.files.add(Path(name))


class Carries:
    """Whether a value holds an action or the observation before it."""

    def __init__(self, observation: Observation, action: Action) -> None:
        self._ids = [_spelt(part.tokens) for part in (observation, action)]
        self._texts = {part.text for part in (observation, action)}
        self._known: dict[int, bool] = {}

    def __call__(self, value: Any) -> bool:
        if isinstance(value, str):
            return value in self._texts
        if isinstance(value, array | torch.Tensor):
            return any(
                ids
                in _spelt(value.reshape(-1).tolist() if isinstance(value, torch.Tensor) else value)
                for ids in self._ids
            )
        if dataclasses.is_dataclass(value):
            if id(value) not in self._known:
                self._known[id(value)] = False  # a record within itself
                fields = (getattr(value, one.name, None) for one in dataclasses.fields(value))
                self._known[id(value)] = any(map(self, fields))
            return self._known[id(value)]
        if isinstance(value, Mapping):
            return any(map(self, value.values()))
        if isinstance(value, tuple | list):
            if value and all(isinstance(one, int) for one in value):
                return any(ids in _spelt(value) for ids in self._ids)
            return any(map(self, value))
        return False


def _spelt(ids: Iterable[int]) -> str:
    """Ids as a text in which a part of them is found."""
    return "".join(f" {number} " for number in ids)


def trace() -> Trace:
    """What one update of CoLLM-CC passes through."""
    found = Trace()
    sets = ["run.device=cpu", "algorithm.name=collm_cc", "evaluation.episodes=1"]

    def start_traced(function: Callable[..., object], arguments: tuple[Any, ...]) -> int:
        def traced() -> None:
            sys.setprofile(found)
            function(*arguments)

        return start_new_thread(traced, ())

    with (
        tempfile.TemporaryDirectory() as folder,
        # `threading.setprofile` does not reach the event loop's thread
        patch("colearn.rollout.executors.start_new_thread", start_traced),
    ):
        threading.setprofile(found)
        sys.setprofile(found)
        try:
            train("quickstart", out=Path(folder) / "run", sets=sets)
        except Traced:
            pass
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    return found


def sources() -> list[Path]:
    """The library's files, without tasks and algorithms."""
    files = (file for file in PACKAGE.rglob("*.py"))
    return sorted(f for f in files if f.relative_to(PACKAGE).parts[0] not in LINKED)


def class_homes() -> dict[str, list[str]]:
    """Files of each public class name that has more than one."""
    homes = defaultdict(list)
    linked = (file for name in LINKED for file in (PACKAGE / name).resolve().rglob("*.py"))
    for file in [*sources(), *linked]:
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(str(file.relative_to(PACKAGE.parent)))
    return {name: files for name, files in homes.items() if len(files) > 1}


def task_members() -> list[str]:
    """What a task is asked for: `DecPOMDP`'s public methods and attributes."""
    named = [*vars(DecPOMDP), *inspect.get_annotations(DecPOMDP)]
    return sorted({name for name in named if not name.startswith("_")})


def passed_on() -> list[str]:
    """Properties of the form `return self.held.name` in `CONFIG_FOLDERS`."""
    found = []
    for folder in CONFIG_FOLDERS:
        for file in sorted((PACKAGE / folder).rglob("*.py")):
            for kind in ast.walk(ast.parse(file.read_text())):
                if isinstance(kind, ast.ClassDef):
                    found += [f"{kind.name}.{name}" for name in _passing(kind)]
    return found


def _passing(kind: ast.ClassDef) -> list[str]:
    names = []
    for function in kind.body:
        if not isinstance(function, ast.FunctionDef) or not function.decorator_list:
            continue
        body = function.body[1:] if ast.get_docstring(function) else function.body
        returned = ast.unparse(body[-1]) if body else ""
        if len(body) == 1 and re.fullmatch(r"return self\.\w+\.\w+", returned):
            names.append(function.name)
    return names


def config_forms() -> list[str]:
    """The forms of a run's config: the mapping, and the classes in whose fields the whole of it
    stands. That of a running experiment is its `Assembly`; a fitted critic is no run."""
    holders = []
    for folder in ("config", "experiment", "trainer"):
        for file in sorted((PACKAGE / folder).rglob("*.py")):
            if file.stem == "critic_fit":
                continue
            for node in ast.parse(file.read_text()).body:
                if isinstance(node, ast.ClassDef):
                    fields = (one for one in ast.walk(node) if isinstance(one, ast.AnnAssign))
                    if any(ast.unparse(one.annotation) in FORMS for one in fields):
                        holders.append(node.name)
    return ["Mapping", "Config", *holders]


def lines(files: list[Path]) -> int:
    """Lines of all files together."""
    return sum(len(file.read_text().splitlines()) for file in files)


def main() -> None:
    found = trace()
    twice, members = class_homes(), task_members()
    tops = [p.name for p in PACKAGE.iterdir() if p.suffix in ("", ".py") and p.name[0] != "_"]
    rows = {
        "files from command to gradient": sorted(str(f.relative_to(PACKAGE)) for f in found.files),
        "record types of one action": sorted(found.records),
        "class names with two homes": [f"{name}: {', '.join(f)}" for name, f in twice.items()],
        "members of DecPOMDP": members,
        "forms of a config": config_forms(),
        "properties that pass on what another form holds": passed_on(),
        "folders and modules at the top of colearn/": sorted(set(tops) - LINKED - {"py.typed"}),
    }
    for name, entries in rows.items():
        print(f"{len(entries):6,}  {name}")
        if "--each" in sys.argv:
            print("".join(f"          {entry}\n" for entry in entries), end="")
    print(f"{lines(list(found.files)):6,}  lines of these files")
    print(f"{lines(sources()):6,}  lines of Python in colearn/, without tasks and algorithms")


if __name__ == "__main__":
    main()
