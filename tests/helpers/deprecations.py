"""Deprecated calls of libraries from this project's code, as errors.

Libraries tell of them by warnings that are attributed to their own files, or by a line of their
log, so that no filter of warnings finds the caller. Here the stack is read: a call is the project's
own if its code stands right above the library that warns.
"""

from __future__ import annotations

import functools
import logging
import sys
import sysconfig
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).parents[2]
OWN = tuple(f"{ROOT / folder}/" for folder in ("colearn", "algorithms", "tasks", "examples"))
LIBRARIES = ("torch", "transformers", "peft", "vllm", "trl", "accelerate", "pettingzoo")
KINDS = (DeprecationWarning, PendingDeprecationWarning, FutureWarning)
_BETWEEN = ("/torch/nn/modules/module.py", "/torch/utils/_contextlib.py")
"""Files that only pass calls on."""
_OF_ANY_CALL = ("vLLM has deprecated support for supporting different tokenizers",)
"""Beginnings of lines that a library writes whether or not the deprecated feature is used: vLLM
writes this one for the first request with any adapter."""
_STANDARD = f"{sysconfig.get_path('stdlib')}/"
_SITES = f"{sysconfig.get_path('purelib')}/"


class DeprecatedCall(AssertionError):
    """Not a `Warning`: code that reads damaged files converts other exceptions."""


def install() -> None:
    """Watch `warnings.warn` and the libraries' loggers in this process."""
    warn, warning = warnings.warn, logging.Logger.warning

    @functools.wraps(warn)
    def watched_warn(
        message: Any, category: Any = None, stacklevel: int = 1, *given: Any, **named: Any
    ) -> None:
        kind = type(message) if isinstance(message, Warning) else category
        if isinstance(kind, type) and issubclass(kind, KINDS):
            refuse_own(str(message))
        warn(message, category, stacklevel + 1, *given, **named)

    @functools.wraps(warning)
    def watched_warning(self: logging.Logger, message: Any, *given: Any, **named: Any) -> None:
        if self.name.partition(".")[0] in LIBRARIES and "deprecated" in str(message):
            refuse_own(str(message))
        warning(self, message, *given, **{**named, "stacklevel": named.get("stacklevel", 1) + 1})

    warnings.warn = watched_warn  # type: ignore[assignment]
    logging.Logger.warning = watched_warning  # type: ignore[method-assign]


def refuse_own(message: str) -> None:
    """Errors: DeprecatedCall if the project's code made the call that a library warns of."""
    files = _files(sys._getframe(2))
    library = _library(next(files, ("", False))[0])
    if library not in LIBRARIES or message.startswith(_OF_ANY_CALL):
        return
    for file, imports in files:
        if file.startswith(OWN):
            raise DeprecatedCall(f"{Path(file).relative_to(ROOT)}: {message}")
        if (
            _library(file) != library or imports
        ):  # a library that imports its own parts warns itself
            return


def _files(frame: FrameType | None) -> Iterator[tuple[str, bool]]:
    """The files of a stack, from the one that warns, without those that only pass calls on; and
    whether the file is there as it imports the one before it."""
    imports = False
    while frame is not None:
        file = frame.f_code.co_filename
        imports = imports or file.startswith("<frozen importlib")
        standard = file.startswith(_STANDARD) and not file.startswith(_SITES)
        if not (standard or file.startswith("<") or file.endswith(_BETWEEN)):
            yield file, imports
            imports = False
        frame = frame.f_back


def _library(file: str) -> str:
    """The package that a file is of; '' outside of the installed ones."""
    return file.removeprefix(_SITES).partition("/")[0] if file.startswith(_SITES) else ""
