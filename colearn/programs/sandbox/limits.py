"""Resource limits of a run.

Inside the sandbox, `_apply_limits` sets the limits on memory, processor time, processes and file
sizes before the program starts. `supervise` enforces the limits on wall-clock time, output and
number of files. Bubblewrap (`_bwrap`) limits the size of the in-memory folder.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from colearn.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Resource limits of one run.

    Errors: ConfigError that names a field that is not positive, or a memory limit that is too low
    for Python.
    """

    seconds: float = 10.0
    """Limit of the wall-clock time of the whole run, all tests together. Each process may use as
    much processor time, rounded up to whole seconds."""
    memory_mb: int = 512
    """Address space in MB, divided equally among `processes`."""
    processes: int = 1
    """Process limit. With 1, the program cannot start processes, and can start at most 32 further
    threads; above 1, processes and threads count together."""
    output_kb: int = 256
    """Limit of standard output and error together in KB; a program that writes more is killed."""
    file_mb: int = 16
    """Size limit of the program's folder, which is in memory, and of each file in it, in MB."""
    files: int = 4096
    """Maximum number of files in the program's folder; no other limit covers the kernel memory that
    files use. The run checks the number twenty times a second and kills a program above the
    limit."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
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
