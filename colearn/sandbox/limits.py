"""How much a program may use."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from colearn.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Of one run. Times are wall-clock seconds unless they say otherwise.

    Errors: ConfigError naming the field that is not positive, or memory too small for Python.
    """

    seconds: float = 10.0
    """From the first process of the run to the last, all tests together."""
    call_seconds: float | None = None
    """For one call by a test; None: what is left of `seconds`. A call that takes longer fails its
    test, and the tests after it go on with a fresh process."""
    cpu_seconds: float | None = None
    """Of processor time per process; None: as `seconds`. Rounded up to whole seconds."""
    memory_mb: int = 512
    """Of address space, shared out equally among `processes`."""
    processes: int = 1
    """With 1 the program can start no other, and has up to 32 more threads; with more, processes
    and threads together."""
    output_kb: int = 256
    """Of standard output and error together; a program that writes more is ended."""
    file_mb: int = 16
    """Of its folder in memory, and of any one file."""
    files: int = 4096
    """In its folder. The kernel's memory for them is counted by no other limit. Bubblewrap cannot
    be told: there the run looks twenty times a second, and ends a program that has more."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is None and field.name in ("call_seconds", "cpu_seconds"):
                continue
            whole = field.name in ("memory_mb", "processes", "output_kb", "file_mb", "files")
            kinds = int if whole else int | float
            if isinstance(value, bool) or not isinstance(value, kinds) or not 0 < value < math.inf:
                kind = "whole number" if whole else "number"
                raise ConfigError(f"limits.{field.name}: {value!r} must be a positive {kind}")
        if self.memory_mb < 64 * self.processes:
            raise ConfigError(
                f"limits.memory_mb: {self.memory_mb} is too small for Python; "
                f"give at least 64 for each of {self.processes} process(es)"
            )

    @property
    def whole_cpu_seconds(self) -> int:
        return math.ceil(self.seconds if self.cpu_seconds is None else self.cpu_seconds)
