"""Checks that the files that a comparison's configs name are those of its earlier runs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from colearn.config import ResolvedRun
from colearn.config.located import as_written
from colearn.errors import CheckpointError
from colearn.models.sources import ACCEPT, compared_sources, first_change
from colearn.runs.record import ComparisonFolder
from colearn.text.notes import note


def recorded_files(runs: Iterable[ResolvedRun]) -> dict[str, dict[str, str]]:
    """Returns the digests of the files behind each text that the configs name."""
    return {
        _as_written(run, source.text): dict(source.files)
        for run in runs
        for source in compared_sources(run).values()
        if source.files
    }


def _as_written(run: ResolvedRun, text: str) -> str:
    """The text without the config's folder: a comparison may be continued from elsewhere."""
    written: str = as_written({"": text}, run.config.run.folders)[""]
    return written


def check_files(runs: Iterable[ResolvedRun], out: Path) -> tuple[str, ...]:
    """Returns what changed, as `field: file`, since the comparison in `out` was begun.

    Errors: CheckpointError, one line, for the first change, unless `run.accept_changes` is set; the
    changes are then reported on stderr.
    """
    folder = ComparisonFolder(out)
    if not folder.exists():
        return ()
    before, changes = folder.record().sources, dict[str, None]()
    for run in runs:
        for field, source in compared_sources(run).items():
            name = first_change(before.get(_as_written(run, source.text), {}), source.files)
            if name is None or f"{field}: {name}" in changes:
                continue
            line = f"{field}: {name} is not the one with which the runs in {out} were made"
            if not run.config.run.accept_changes:
                raise CheckpointError(
                    f"{line}; put it back, name another --out, or pool them: --set {ACCEPT}"
                )
            note(line)
            changes[f"{field}: {name}"] = None
    return tuple(changes)
