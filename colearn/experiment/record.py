"""A run's folder: config, run.json, metrics.jsonl, episodes.jsonl."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from colearn.config import Config, dump_config
from colearn.errors import CheckpointError

CONFIG, RUN, METRICS, EPISODES = "config.yaml", "run.json", "metrics.jsonl", "episodes.jsonl"


class Record:
    """Writes one run's files; every line is whole or not there.

    Errors: CheckpointError where the folder holds another run, or one to be resumed explicitly.
    """

    def __init__(self, folder: Path, config: Config, *, resume: bool, writes: bool = True) -> None:
        """`writes` False: another process of this run writes, this one leaves the files alone."""
        self.folder = folder
        self.writes = writes
        self._config = dump_config(config)
        if not writes:
            return
        if folder.exists() and not folder.is_dir():
            raise CheckpointError(f"--out {folder}: is a file; name a folder")
        existing = folder / CONFIG
        self._ours = not existing.exists()
        if existing.exists():
            if not resume:
                raise CheckpointError(
                    f"--out {folder}: the folder holds a run; continue it with --resume or name "
                    "another folder"
                )
            there, here = yaml.safe_load(existing.read_text()), yaml.safe_load(self._config)
            if there != here:
                raise CheckpointError(
                    f"--out {folder}: the folder holds a run of another config (first difference: "
                    f"{_difference(there, here)}); set it as it was or name another folder"
                )

    def open(self) -> None:
        """Create the folder; called once everything has been assembled without a mistake."""
        if not self.writes:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / CONFIG).write_text(self._config)

    def discard(self) -> None:
        """Remove what this run has written, unless it was there before or has measured anything."""
        if self.writes and self._ours and not (self.folder / METRICS).exists():
            for name in (CONFIG, RUN):
                (self.folder / name).unlink(missing_ok=True)
            for tracker in ("tensorboard", "wandb"):
                shutil.rmtree(self.folder / tracker, ignore_errors=True)
            if not any(self.folder.iterdir()):
                self.folder.rmdir()

    def rewind(self, iteration: int) -> None:
        """Drop lines written after the checkpoint that a run resumes from."""
        for name in (METRICS, EPISODES) if self.writes else ():
            path = self.folder / name
            if path.exists():
                kept = [line for line in _lines(path) if line["iteration"] <= iteration]
                path.write_text("".join(json.dumps(line) + "\n" for line in kept))

    def metrics(self, line: Mapping[str, Any]) -> None:
        self._append(METRICS, [line])

    def episodes(self, lines: Iterable[Mapping[str, Any]]) -> None:
        self._append(EPISODES, lines)

    def run(self, **fields: Any) -> None:
        """Replace run.json in one move."""
        if not self.writes:
            return
        aside = self.folder / (RUN + ".partial")
        aside.write_text(json.dumps(fields, indent=1))
        aside.rename(self.folder / RUN)

    def evaluations(self) -> list[dict[str, Any]]:
        """The evaluation lines written so far."""
        path = self.folder / METRICS
        lines = _lines(path) if path.exists() else []
        return [line for line in lines if line["kind"] == "evaluation"]

    def _append(self, name: str, lines: Iterable[Mapping[str, Any]]) -> None:
        if not self.writes:
            return
        with (self.folder / name).open("a") as file:
            for line in lines:
                file.write(json.dumps(line) + "\n")


def _difference(one: Any, other: Any, where: str = "") -> str:
    """The dotted key of the first setting in which two configs differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in dict.fromkeys((*one, *other)):
            if one.get(key) != other.get(key):
                return _difference(one.get(key), other.get(key), f"{where}.{key}".lstrip("."))
    return where


def _lines(path: Path) -> list[dict[str, Any]]:
    """Parsed lines; a last one cut off in mid-write is dropped."""
    found = []
    for text in path.read_text().splitlines(keepends=True):
        if text.endswith("\n"):
            found.append(json.loads(text))
    return found
