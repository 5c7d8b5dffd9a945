"""Default folder of a run whose program names no folder."""

from __future__ import annotations

import itertools
from pathlib import Path

from colearn.config import Config
from colearn.errors import ConfigError
from colearn.record.place import named_folder
from colearn.text.launcher import world_size

_ABOVE = Path("runs")


def run_folder(config: Config, out: str | Path | None, *, resume: bool) -> Path:
    """`out`, or the first free `runs/TASK-ALGORITHM-NUMBER`.

    Errors: ConfigError for a resume without a folder, and for several processes without one.
    """
    if out is not None:
        return named_folder(out, "out")
    if resume:
        raise ConfigError("out: missing; name the folder of the run to resume")
    if world_size() > 1:
        raise ConfigError("out: missing; name the folder that all processes of the run share")
    name = f"{_plain(config.task.name)}-{_plain(config.algorithm.name)}"
    free = (_ABOVE / f"{name}-{number}" for number in itertools.count(1))
    return next(folder for folder in free if not folder.exists())


def _plain(name: str) -> str:
    return Path(name.rpartition(":")[2]).stem
