"""Reads the plans and runs in the folders of comparisons and suites."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field

from colearn.config import SuiteSettings, load_suite
from colearn.errors import CheckpointError, ConfigError
from colearn.text.masking import masked_settings

from .fields import RecordFields, Version
from .files import read_fields, read_yaml, write_text
from .folder import COMPARISON, RUN, RUNS, RunFolder

SUITE = "suite.json"


class ComparisonEntry(RecordFields):
    """One planned run."""

    run: str
    """Name of the run's folder below `runs`."""
    algorithm: str
    """Label of the algorithm."""
    seed: int


class ComparisonRecord(RecordFields):
    """compare.json: the plan of a comparison."""

    shared: dict[str, Any] = Field(default_factory=dict)
    """Settings that all algorithms share."""
    settings: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Settings of each algorithm's runs, by label, without seeds."""
    version: Version
    command: str | None = None
    algorithms: tuple[str, ...]
    """Labels of the algorithms, in order."""
    runs: tuple[ComparisonEntry, ...]
    sources: dict[str, dict[str, str]] = Field(default_factory=dict)
    """Digests of the files behind each path, model and module that the configs name."""
    changes: tuple[str, ...] = ()
    """Files that changed while the comparison was made, as `field: file`."""


class SuiteRecord(RecordFields):
    """suite.json: the plan of a suite."""

    command: str | None = None
    settings: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ComparisonFolder:
    """The folder of a comparison. Errors: CheckpointError that names an unreadable file."""

    path: Path

    def exists(self) -> bool:
        return (self.path / COMPARISON).is_file()

    def record(self) -> ComparisonRecord:
        return read_fields(ComparisonRecord, self.path / COMPARISON)

    def write(self, record: ComparisonRecord) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        write_text(self.path / COMPARISON, record.model_dump_json(indent=1) + "\n")

    def run(self, name: str) -> RunFolder:
        return RunFolder(self.path / RUNS / name)

    def config(self, name: str) -> Path:
        """Path of the config file with which a run is started."""
        return self.path / "configs" / f"{name}.yaml"

    def settings(self, name: str) -> dict[str, Any]:
        """Return the config, as plain data, with which a run was last started; empty before the
        run's first start."""
        path = self.config(name)
        return read_yaml(path) if path.is_file() else {}

    def planned(self) -> list[tuple[str, RunFolder]]:
        """Label and folder of every planned run."""
        return [(entry.algorithm, self.run(entry.run)) for entry in self.record().runs]

    def runs_on_disk(self) -> list[RunFolder]:
        """Folder of every run that has begun, planned or not."""
        return [RunFolder(path.parent) for path in sorted((self.path / RUNS).glob(f"*/{RUN}"))]


@dataclass(frozen=True, slots=True)
class SuiteFolder:
    """The folder of a suite, with one comparison for each task."""

    path: Path

    def exists(self) -> bool:
        return (self.path / SUITE).is_file()

    def record(self) -> SuiteRecord:
        return read_fields(SuiteRecord, self.path / SUITE)

    def settings(self) -> SuiteSettings:
        try:
            return load_suite(self.record().settings)
        except ConfigError as error:
            raise CheckpointError(f"{self.path / SUITE}: {error}; delete the file") from None

    def write(self, settings: SuiteSettings, command: str | None) -> None:
        plain = masked_settings(settings.model_dump(mode="json"))
        record = SuiteRecord(command=command, settings=plain)
        self.path.mkdir(parents=True, exist_ok=True)
        write_text(self.path / SUITE, record.model_dump_json(indent=1) + "\n")

    def comparison(self, task: str) -> ComparisonFolder:
        return ComparisonFolder(self.path / task)
