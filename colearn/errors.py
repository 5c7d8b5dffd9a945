"""Exceptions for problems that a user can fix; each message is one line that names the field and
the remedy.

The command line prints these exceptions without a traceback and exits with code 2.
"""

from __future__ import annotations

import difflib
import importlib
import sysconfig
import traceback
from collections.abc import Iterable
from errno import EACCES, EDQUOT, EFBIG, EISDIR, ENOSPC, EPERM, EROFS
from typing import Any

_LONGEST_REASON = 200
_INSTALLED = tuple(sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib"))


class ColearnError(Exception):
    """Base class of colearn's errors; each message states what the user must do."""

    everywhere = False
    """Whether every process of a distributed run raises this error; only the first process then
    prints it."""


class ConfigError(ColearnError):
    """Raised when a setting is missing, unknown, of the wrong type, or conflicts with another
    setting."""


class DataNotHere(ConfigError):
    """Raised when a task's data are not on this machine and cannot be downloaded."""


class TaskError(ColearnError):
    """Raised when a task breaks its contract (not text, not finite, no items, ...)."""


class WorkerLost(TaskError):
    """Raised when a worker process that executes task steps ends before the iteration is
    complete."""


class ModelLost(ColearnError):
    """Raised when a worker process that holds models has ended. All training of these models since
    the last checkpoint is lost."""


class CheckpointError(ColearnError):
    """Raised when a checkpoint or a run folder cannot be read or must not be overwritten."""


class ServerLost(ColearnError):
    """Raised when a generation server has ended, hangs or answers with the wrong weights; the
    server's answers are discarded."""


class MissingExtra(ColearnError):
    """Raised when an optional dependency is not installed.

    The pip command in the message works from any folder and without a package index that lists
    colearn, because colearn itself is already installed.
    """

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed: pip install 'colearn-llm[{extra}]'")
        self._given = package, extra

    def __reduce__(self) -> tuple[type[MissingExtra], tuple[str, str]]:
        """Supports pickling, because workers return their errors in pickled form."""
        return type(self), self._given


class ShortTraceback:
    """Context manager that removes the inner calls from the traceback of a ColearnError. The
    error's message is sufficient, and a script or notebook would otherwise show every inner call
    above the message."""

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> None:
        if isinstance(error, ColearnError):
            error.__traceback__ = error.__cause__ = None  # without a cause, no context is shown


def required(module: str, extra: str, *, package: str | None = None) -> Any:
    """Import and return an optional module. `package` is the pip name, if it differs from the
    module's name.

    Errors: MissingExtra. An installed package that fails to import raises its own error.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        root = module.partition(".")[0]
        if error.name not in (module, root):
            raise
        raise MissingExtra(package or root, extra) from None


def nearest(name: str, known: Iterable[str], *, listed: str | None = None) -> str:
    """Returns `did you mean 'x'?` for a misspelt name. Otherwise returns the known names or, if
    given, `listed`, which is the command that prints these names."""
    known = sorted(known)
    close = difflib.get_close_matches(name, known, n=1)
    if not close:  # `steps` of environment_steps
        words = [candidate for candidate in known if name in candidate.split("_")]
        close = words if len(words) == 1 else []
    if close:
        return f"did you mean '{close[0]}'?"
    if listed is not None:
        return f"see {listed}"
    return "known: " + (", ".join(known) if known else "none")


def line_of(error: BaseException) -> str:
    """Returns the file and line of an exception: the last traceback line outside libraries, or else
    the last traceback line. For a SyntaxError, returns the line of the invalid source."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}, line {error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    libraries = (*_INSTALLED, "<frozen")
    user_frames = [frame for frame in frames[1:] if not frame.filename.startswith(libraries)]
    at = (user_frames or frames)[-1]
    return f"{at.filename}, line {at.lineno}"


_DISK = frozenset({ENOSPC, EDQUOT, EFBIG, EROFS, EACCES, EPERM, EISDIR})


def is_disk_error(error: OSError) -> bool:
    """Whether a file could not be written or read because of its place: the disk is full or
    read-only, access is denied, or there is a folder of that name."""
    return error.errno in _DISK


def reason_of(error: BaseException) -> str:
    """Returns an exception's message as one line of printable characters. A long message ends after
    a whole word, so that no address or path is cut."""
    try:
        text = str(error)
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 - the class of the exception is foreign code
        return "its str() raises"
    line = printable(text)
    if len(line) > _LONGEST_REASON:
        cut = line[:_LONGEST_REASON]
        words = cut.rpartition(" ")[0]
        line = f"{words if len(words) > _LONGEST_REASON // 2 else cut} ..."
    return line or "nothing said"


def printable(text: str) -> str:
    """Returns the text as one line of printable characters."""
    return "".join(sign if sign.isprintable() else "?" for sign in " ".join(text.split()))
