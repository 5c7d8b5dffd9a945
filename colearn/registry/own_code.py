"""Imports the code of a user that a config names as `module:Class` or `module:function`: modules
beside the config or in the current folder, and other modules there that the named modules import.

The folders are not on `sys.path`, because libraries look for optional packages (`dill`, `pynvml`)
and would run a file of the same name there. Instead, the last import finder searches the folders
for names from the config only.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from types import FrameType, ModuleType
from typing import Any

from colearn.errors import ColearnError, ConfigError, line_of, reason_of
from colearn.text.notes import note

from .given import given, is_given

_UNPICKLES = frozenset(
    (
        *(f"multiprocessing.{name}" for name in ("connection", "pool", "queues", "reduction")),
        *("concurrent.futures.process", "multiprocessing.spawn", "multiprocessing.process"),
        *("ray.cloudpickle.cloudpickle", "ray._private.function_manager"),
        *("ray._private.serialization", "colearn.training.step_workers"),
    )
)
"""Modules that unpickle values from other processes of this run, and therefore import the modules
that the pickles name."""
_SAFE_PATH = "PYTHONSAFEPATH"


class FolderFinder(MetaPathFinder):
    """Finds modules of `folders`: those in `named`, those that a found module imports, and those
    that unpickling needs."""

    def __init__(self, folders: Sequence[str]) -> None:
        self.folders = list(folders)
        self.named: set[str] = set()
        self.found: set[str] = set()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Returns the spec of the module in the first folder that has it; None for a name that only
        a library tries to import."""
        if path is not None:  # in a package, whose path Python searches
            return None
        if fullname not in self.named and not self._is_own(sys._getframe(1)):
            return None
        spec = PathFinder.find_spec(fullname, self.folders)
        if spec is None:
            return None
        self.found.add(fullname)
        return spec

    def _is_own(self, frame: FrameType | None) -> bool:
        """Whether the import is made by a module of the folder, or by the unpickling of data from
        another process."""
        while frame is not None and _imports(frame):
            frame = frame.f_back
        importer = "" if frame is None else str(frame.f_globals.get("__name__", ""))
        return importer in _UNPICKLES or importer.partition(".")[0] in self.found


def _imports(frame: FrameType) -> bool:
    name = str(frame.f_globals.get("__name__", ""))
    return name.partition(".")[0] == "importlib" or frame.f_code.co_filename == __file__


def folders() -> tuple[str, ...]:
    """The folders in which this process finds the user modules that a config names, in order."""
    finder = _finder()
    return () if finder is None else tuple(finder.folders)


def find_in(*folders: str) -> None:
    """Makes this process find the modules that a config names in `folders`, before the folders that
    are already known."""
    if not folders:
        return
    if (finder := _finder()) is None:
        sys.meta_path.append(FolderFinder(folders))
    else:
        finder.folders[:] = dict.fromkeys((*folders, *finder.folders))


def imported(module: str) -> ModuleType:
    """Imports a module that the config names, after a note on stderr. Global switches that the
    module changes are put back or named (`checked`). Errors: as for an import statement."""
    if module in sys.modules:
        return importlib.import_module(module)
    from colearn.contract.global_switches import checked  # loads numpy

    finder, root = _finder(), module.partition(".")[0]
    if finder is not None:
        finder.named.add(root)
    try:
        if root not in sys.modules and (spec := find_spec(root)) is not None:
            note(f"imports {spec.origin or root}, which the config names")
        with checked(f"importing '{module}'", importing=True):
            return importlib.import_module(module)
    finally:
        if finder is not None:
            finder.named.discard(root)


_own_code: ContextVar[bool] = ContextVar("own_code", default=True)


@contextmanager
def without_own_code() -> Iterator[None]:
    """Context in which `module:Class` raises an error, so that only installed names are imported.
    The context is used where a config is read but not run, for example for a report or a
    comparison's record."""
    before = _own_code.set(False)
    try:
        yield
    finally:
        _own_code.reset(before)


def own_code_runs() -> bool:
    """Whether a config's `module:Class` may be imported here (`without_own_code`)."""
    return _own_code.get()


def is_target(text: str) -> bool:
    """Whether a text has the form `module:Class`."""
    module, _, attribute = text.partition(":")
    return all(part.isidentifier() for part in (*module.split("."), attribute))


def check_function(target: str, field: str) -> None:
    """Check that a `module:function` may be used, without importing the function.

    Errors: ConfigError naming `field`.
    """
    if not is_target(target):
        raise ConfigError(f"{field}: '{target}' is no module:function; give both as names")
    if not own_code_runs():
        raise ConfigError(f"{field}: '{target}' is code of its own, which reading does not run")


def own_function(target: str, field: str) -> Any:
    """Returns the function that `module:function` names; imports the module.

    Errors: ConfigError naming `field` and the missing module or function.
    """
    check_function(target, field)
    module, _, attribute = target.partition(":")
    function = own_object(module, attribute, target, field)
    if not callable(function):
        raise ConfigError(f"{field}: '{target}' is a {type(function).__name__}; name a function")
    return function


def own_object(module: str, attribute: str, name: str, field: str) -> Any:
    """Returns an object of a module that the config names, or an object that was given in Python.

    Errors: ConfigError naming `field` and the missing module or object.
    """
    if is_given(name):
        return given(name, field)
    try:
        loaded = imported(module)
    except (ColearnError, KeyboardInterrupt):
        raise
    except BaseException as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing is not None and f"{module}.".startswith(f"{missing}."):
            raise ConfigError(
                f"{field}: no module '{missing}' for '{name}'; put it beside the config "
                "or install it"
            ) from None
        raise ConfigError(
            f"{field}: importing '{module}' raised {type(error).__name__}: {reason_of(error)} "
            f"({line_of(error)}); fix it there"
        ) from error
    if not hasattr(loaded, attribute):
        raise ConfigError(f"{field}: module '{module}' has no '{attribute}'")
    return getattr(loaded, attribute)


@contextmanager
def safe_path() -> Iterator[bool]:
    """Keeps the current folder off `sys.path` in Python processes that start in the block, because
    a new process imports some modules before it copies its parent's path. Yields whether the
    environment was changed."""
    added = _SAFE_PATH not in os.environ
    if added:
        os.environ[_SAFE_PATH] = "1"
    try:
        yield added
    finally:
        if added:
            os.environ.pop(_SAFE_PATH, None)


def begin_worker(own_folders: Sequence[str], added: bool) -> None:
    """Initialises a worker process, so that it finds user modules in the same folders as its
    parent.
    `added` is the result of `safe_path`; the change that `safe_path` made is undone here, so that
    programs started by the worker have the default path."""
    if added:
        os.environ.pop(_SAFE_PATH, None)
    find_in(*own_folders)


def _finder() -> FolderFinder | None:
    return next((finder for finder in sys.meta_path if isinstance(finder, FolderFinder)), None)
