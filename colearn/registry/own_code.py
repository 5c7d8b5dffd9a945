"""Imports modules of the current folder that a config names, and the modules that these import from
the same folder.

The folder is not on `sys.path`, because libraries look for optional packages (`dill`, `pynvml`) and
would run a file of the same name. Instead, an import finder after all others finds only names from
the config.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import FrameType, ModuleType

from colearn.text.notes import note

_UNPICKLES = frozenset(
    (
        *(f"multiprocessing.{name}" for name in ("connection", "pool", "queues", "reduction")),
        *("concurrent.futures.process", "multiprocessing.spawn", "multiprocessing.process"),
        *("ray.cloudpickle.cloudpickle", "ray._private.function_manager"),
        *("ray._private.serialization", "colearn.experiment.step_workers"),
    )
)
"""Modules that unpickle values from this run's own processes and therefore import the modules named
in the pickles."""
_SAFE_PATH = "PYTHONSAFEPATH"


class FolderFinder(MetaPathFinder):
    """Finds modules in `folder` if they are `named`, imported by a module that was found there, or
    needed for unpickling."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.named: set[str] = set()
        self.announced: set[str] = set()
        """Modules whose import needs no note, since the user already knows of them."""
        self.found: set[str] = set()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of the module in the folder; None for a name that only a library looks for."""
        if path is not None:  # in a package, whose path Python searches
            return None
        if fullname not in self.named and not self._is_own(sys._getframe(1)):
            return None
        spec = PathFinder.find_spec(fullname, [self.folder])
        if spec is None:
            return None
        self.found.add(fullname)
        if fullname in self.named - self.announced:
            self.announced.add(fullname)
            note(f"imports {spec.origin or fullname}, which the config names")
        return spec

    def _is_own(self, frame: FrameType | None) -> bool:
        """Whether the import comes from a module of the folder, or from unpickling data of another
        process."""
        while frame is not None and _imports(frame):
            frame = frame.f_back
        importer = "" if frame is None else str(frame.f_globals.get("__name__", ""))
        return importer in _UNPICKLES or importer.partition(".")[0] in self.found


def _imports(frame: FrameType) -> bool:
    name = str(frame.f_globals.get("__name__", ""))
    return name.partition(".")[0] == "importlib" or frame.f_code.co_filename == __file__


def folder() -> str | None:
    """The folder in which this process finds the config's own modules; None if none is set."""
    finder = _finder()
    return None if finder is None else finder.folder


def find_in(folder: str | None) -> None:
    """Makes this process find the config's own modules in a folder; None changes nothing."""
    if folder is not None and _finder() is None:
        sys.meta_path.append(FolderFinder(folder))


def mark_announced(targets: Iterable[str]) -> None:
    """Marks each `module:Class` as known to the user, so that the import of its module prints no
    note."""
    if (finder := _finder()) is not None:
        finder.announced |= {target.partition(":")[0].partition(".")[0] for target in targets}


def imported(module: str) -> ModuleType:
    """Imports a module that the config names. Errors: as for an import."""
    finder, root = _finder(), module.partition(".")[0]
    if finder is None:
        return importlib.import_module(module)
    finder.named.add(root)
    try:
        return importlib.import_module(module)
    finally:
        finder.named.discard(root)


@contextmanager
def safe_path() -> Iterator[bool]:
    """Keeps the current folder off the path of Python processes that start in the block, since a
    new process imports some modules before it takes over its parent's path. Yields whether this
    changed the environment."""
    added = _SAFE_PATH not in os.environ
    if added:
        os.environ[_SAFE_PATH] = "1"
    try:
        yield added
    finally:
        if added:
            os.environ.pop(_SAFE_PATH, None)


def begin_worker(own_folder: str | None, added: bool) -> None:
    """Initialises a worker process, so that it finds own modules as its parent does. `added`:
    result of `safe_path`, whose change is undone here so that programs started by the worker have
    the usual path."""
    if added:
        os.environ.pop(_SAFE_PATH, None)
    find_in(own_folder)


def _finder() -> FolderFinder | None:
    return next((one for one in sys.meta_path if isinstance(one, FolderFinder)), None)
