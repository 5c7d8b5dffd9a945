"""Errors of a user's own parts: each names the section, the class and the line of its code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import FunctionType

from colearn.errors import ColearnError, ConfigError, line_of, reason_of


@contextmanager
def calling_part(field: str, part: object) -> Iterator[None]:
    """Context for a call of an algorithm's part, of a callback or of a function. `field` is its
    section, such as `algorithm.critic`.

    Errors: ConfigError, which names the field and the source line, for an exception of a class or a
    function that is not the library's. Exceptions of the library's own propagate unchanged.
    """
    try:
        yield
    except ColearnError:
        raise
    except Exception as error:
        source = part if isinstance(part, FunctionType) else type(part)
        if source.__module__.partition(".")[0] == "colearn":
            raise
        raise ConfigError(
            f"{field}: {source.__name__} raised {type(error).__name__}: {reason_of(error)} "
            f"({line_of(error)}); fix it there"
        ) from error
