"""Errors of an environment's own code, located in the environment's file."""

from __future__ import annotations

import inspect
import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import colearn
from colearn.errors import ColearnError, TaskError, reason_of

_PACKAGE = Path(colearn.__file__).parent
_OURS = tuple(str(folder) for folder in (_PACKAGE, (_PACKAGE / "tasks").resolve()))
_LIBRARIES = tuple(sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib"))


@contextmanager
def foreign(name: str, env: Any, method: str) -> Iterator[None]:
    """Context manager for a call of an environment's method and for reading its result.

    Errors: TaskError that names the line of the environment that raised. If no line of the
    environment raised, because its result is not as PettingZoo's interface requires, the error
    names the definition of the method.
    """
    try:
        yield
    except ColearnError as error:
        raise TaskError(f"{error} ({_definition(env, method)})") from None
    except Exception as error:
        raised, told = raised_in(error), f"{type(error).__name__}: {reason_of(error)}"
        if raised is not None:
            raise TaskError(f"task.env: {method} of '{name}' raised {told} ({raised})") from error
        raise TaskError(
            f"task.env: {method} of '{name}' does not return what PettingZoo's interface requires "
            f"({told}; {_definition(env, method)}); return it as in PettingZoo's documentation"
        ) from error


def raised_in(error: BaseException) -> str | None:
    """File and line of the last call outside of colearn that led to an exception; None if colearn
    itself raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    outside = [frame for frame in frames if not frame.filename.startswith(_OURS)]
    # the environment may call libraries, which are not at fault
    own = [frame for frame in outside if not frame.filename.startswith(_LIBRARIES)]
    chosen = [*outside[-1:], *own[-1:]]
    return f"{chosen[-1].filename}, line {chosen[-1].lineno}" if chosen else None


def _definition(env: Any, method: str) -> str:
    """File and line where the innermost environment defines a method."""
    function = inspect.unwrap(getattr(type(env.unwrapped), method, type(env.unwrapped)))
    try:
        return f"{inspect.getsourcefile(function)}, line {inspect.getsourcelines(function)[1]}"
    except (OSError, TypeError):  # a class without a source file
        return f"class {type(env.unwrapped).__name__}"
