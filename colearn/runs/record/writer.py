"""Writes a run's folder."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from filelock import FileLock

from colearn.config import Config, dump_config
from colearn.errors import CheckpointError, ColearnError
from colearn.registry import is_target
from colearn.registry.given import is_given

from .difference import BUDGET, first_difference, value_at
from .fields import CriticLine, Line, Progress, RunRecord
from .files import write_text
from .folder import CONFIG, CRITIC, EPISODES, METRICS, RUN, TREES, RunFolder
from .kept import check_no_remains, kept_lines
from .place import LOCK, check_place, lock_folder


class RunWriter:
    """Writes one run's files while holding a lock. Each line is written completely or not at all.

    Errors: ConfigError if the folder cannot be written, or if the budget is less than the number of
    steps that the run in the folder has made. CheckpointError if the folder contains a different
    run, a run that must be resumed explicitly, or a run that another process is writing.
    CheckpointError also if a write fails.
    """

    def __init__(self, path: Path, config: Config, *, resume: bool, writes: bool = True) -> None:
        """writes: False if another process of this run writes the files."""
        self.folder = RunFolder(path)
        self.writes = writes
        run = config.run.model_copy(
            update={
                "accept_changes": False,  # once, not for ever
                "folders": config.run.folders or (os.getcwd(),),
            }
        )
        self._config = dump_config(config.model_copy(update={"run": run}))
        self._resume = resume
        self._transcripts = config.evaluation.transcripts > 0
        self._lock: FileLock | None = None
        if not writes:
            return
        check_place(path)
        self._ours = not (path / CONFIG).exists()
        if path.is_dir():
            self._lock = lock_folder(path)
        try:
            self._check()
        except ColearnError:
            self.close()
            raise

    def _check(self) -> None:
        if not (self.folder.path / CONFIG).exists():
            check_no_remains(self.folder)
            return
        if not self._resume:
            raise CheckpointError(
                f"--out {self.folder.path}: the folder holds a run; continue it with --resume or "
                "name another folder"
            )
        recorded, current = map(yaml.safe_load, (dump_config(self.folder.config()), self._config))
        self._follow_moved(recorded, current)
        difference = first_difference(_same_objects(recorded, current), current)
        if difference is not None:
            raise CheckpointError(
                f"--out {self.folder.path}: the folder holds a run of another config (first "
                f"difference: {difference}); leave the config out to go on as it was, or name "
                "another folder"
            )
        self.folder.check_budget(value_at(current, BUDGET))

    def _follow_moved(self, recorded: dict[str, Any], current: dict[str, Any]) -> None:
        """Replace the recorded model paths with the given ones, in case a model was moved. When the
        checkpoint is loaded, the models' files are compared with the digests in the checkpoint."""
        checkpoints = self.folder.checkpoints.all()
        for field in checkpoints[-1].sources if checkpoints else ():
            section = field.removesuffix(".path")
            before, after = value_at(recorded, section), value_at(current, section)
            if field != section and isinstance(before, dict) and isinstance(after, dict):
                before["path"] = after.get("path")

    def open(self) -> None:
        """Create the folder. This method is called after the team has been loaded."""
        if not self.writes:
            return
        with self.writing():
            self.folder.path.mkdir(parents=True, exist_ok=True)
        if self._lock is None:
            self._lock = lock_folder(self.folder.path)
            self._check()  # another process may have begun a run here in the meantime
        with self.writing():
            write_text(self.folder.path / CONFIG, self._config)

    def close(self) -> None:
        """Release the lock on the folder."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def discard(self) -> None:
        """Remove the run's files, unless they existed before or contain results."""
        path = self.folder.path
        if self.writes and self._ours and path.is_dir() and not (path / METRICS).exists():
            self.close()
            for name in (CONFIG, RUN, LOCK):
                (path / name).unlink(missing_ok=True)
            for tracker in ("tensorboard", "wandb"):
                shutil.rmtree(path / tracker, ignore_errors=True)
            if not any(path.iterdir()):
                path.rmdir()

    def rewind(self, progress: Progress | None) -> None:
        """Drop the lines that were written after the state `progress`, from which the run
        continues. None drops all lines.

        Missing lines of that state are reported on stderr. Errors: CheckpointError, before any line
        is dropped, for a line that cannot be read, and if files of the run are missing.
        """
        if not self.writes:
            return
        lines_by_path = kept_lines(self.folder, progress, transcripts=self._transcripts)
        for path, lines in lines_by_path.items():
            with self.writing():
                write_text(path, "".join(f"{line}\n" for line in lines))

    def metrics(self, line: Line) -> None:
        self._append(METRICS, [line.model_dump()])

    def episodes(self, lines: Iterable[Mapping[str, Any]]) -> None:
        self._append(EPISODES, lines)

    def critic(self, line: CriticLine) -> None:
        self._append(CRITIC, [line.model_dump()])

    def trees(self, lines: Iterable[Mapping[str, Any]]) -> None:
        self._append(TREES, lines)

    def run(self, record: RunRecord) -> None:
        """Replace run.json atomically."""
        if self.writes:
            with self.writing():
                write_text(self.folder.path / RUN, record.model_dump_json(indent=1))

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Errors: CheckpointError if a write in the block fails; the message says what was kept."""
        try:
            yield
        except OSError as error:
            checkpoints = self.folder.checkpoints.all()
            newest = (
                f"the checkpoint of iteration {checkpoints[-1].iteration}"
                if checkpoints
                else "no checkpoint"
            )
            raise CheckpointError(
                f"--out {self.folder.path}: cannot write ({error.strerror or error}); kept: "
                f"{newest}; fix it and continue with: {resume_command(self.folder.path)}"
            ) from None

    def _append(self, name: str, lines: Iterable[Mapping[str, Any]]) -> None:
        if not self.writes:
            return
        text = "".join(json.dumps(line) + "\n" for line in lines)
        with self.writing(), (self.folder.path / name).open("a", encoding="utf-8") as file:
            file.write(text)


def _same_objects(recorded: Any, current: Any) -> Any:
    """Returns the recorded settings with the current names of functions and classes that are called
    alike, one as an object of a program and one in a module. When the checkpoint is loaded, the
    digests of their sources are compared."""
    if isinstance(recorded, dict) and isinstance(current, dict):
        return {key: _same_objects(value, current.get(key)) for key, value in recorded.items()}
    if isinstance(recorded, list) and isinstance(current, list) and len(recorded) == len(current):
        return [_same_objects(*pair) for pair in zip(recorded, current, strict=True)]
    if not (isinstance(recorded, str) and isinstance(current, str)):
        return recorded
    alike = is_target(recorded) and is_target(current)
    moved = alike and (is_given(recorded) or is_given(current))
    same = moved and recorded.partition(":")[2] == current.partition(":")[2]
    return current if same else recorded


def resume_command(path: Path) -> str:
    """Command that continues the run in a folder."""
    return f"colearn train --out {shlex.quote(str(path))} --resume"
