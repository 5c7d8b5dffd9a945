"""Chooses the default folder of a run for which the program names no folder."""

from __future__ import annotations

import itertools
from pathlib import Path

from colearn.config import Config
from colearn.errors import ConfigError
from colearn.runs.record.folder import open_run
from colearn.runs.record.place import named_folder
from colearn.text.launcher import world_size

_ABOVE = Path("runs")


def run_folder(config: Config, out: str | Path | None, *, resume: bool) -> Path:
    """Returns `out` if given, otherwise the first free `runs/TASK-ALGORITHM-NUMBER`; as an absolute
    path, since code of the user may change the current folder.

    Errors: ConfigError if no folder is given for a resume or for a run with several processes;
    CheckpointError if there is no run to resume.
    """
    if out is not None:
        folder = named_folder(out, "out").absolute()
        if resume:
            open_run(folder)
        return folder
    if resume:
        raise ConfigError("out: missing; name the folder of the run to resume")
    if world_size() > 1:
        raise ConfigError("out: missing; name the folder that all processes of the run share")
    name = f"{_plain(config.task.name)}-{_plain(config.algorithm.name)}"
    free = (_ABOVE / f"{name}-{number}" for number in itertools.count(1))
    return next(folder.absolute() for folder in free if not folder.exists())


def _plain(name: str) -> str:
    return Path(name.rpartition(":")[2]).stem
