"""Reading what a run left on disk; the rest of the comparison sees only `Run`."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from colearn.errors import CheckpointError

Status = Literal["not started", "unfinished", "finished"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """One evaluation of a run and what training had cost by then."""

    iteration: int
    environment_steps: int
    generated_tokens: int
    updates: int
    wall_seconds: float
    metrics: dict[str, float | None]
    """`return` and every other metric; None where it was not finite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A finished run: `run.json`, and the evaluations of `metrics.jsonl` in order."""

    folder: Path
    algorithm: str
    """The label in the comparison: the algorithm's name unless two variants of it are compared."""
    seed: int
    record: dict[str, Any]
    evaluations: tuple[Evaluation, ...]

    @property
    def name(self) -> str:
        return f"{self.algorithm}-s{self.seed}"


def run_status(folder: Path) -> Status:
    """How far the run in `folder` is.

    Errors: CheckpointError if run.json is there and cannot be read.
    """
    if not (folder / "run.json").is_file():
        return "not started"
    return "finished" if read_record(folder).get("status") == "finished" else "unfinished"


def read_record(folder: Path) -> dict[str, Any]:
    """`run.json` of a run.

    Errors: CheckpointError if it is not a JSON object.
    """
    return read_object(folder / "run.json")


def read_object(path: Path) -> dict[str, Any]:
    """A JSON object from a file.

    Errors: CheckpointError naming the file.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CheckpointError(f"{path}: no such file") from None
    except ValueError as error:
        raise CheckpointError(f"{path}: not JSON ({error}); delete it or its folder") from None
    if not isinstance(data, dict):
        raise CheckpointError(f"{path}: must hold a JSON object; delete it or its folder")
    return data


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a .jsonl file; a last line cut short by an interruption is passed over.

    Errors: CheckpointError naming a line that is not a JSON object. A missing file has no lines.
    """
    if not path.is_file():
        return
    text = path.read_text(encoding="utf-8")
    lines = text.split("\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            data = json.loads(line)
        except ValueError:
            if number == len(lines):
                return
            raise CheckpointError(f"{path}:{number}: not JSON; delete the line") from None
        if not isinstance(data, dict):
            raise CheckpointError(f"{path}:{number}: must hold a JSON object; delete the line")
        yield data


def read_run(folder: Path, algorithm: str | None = None) -> Run:
    """A finished run; `algorithm` is its label where that is not the algorithm's own name.

    Errors: CheckpointError if a file is unreadable, lacks a field, or has no evaluation.
    """
    record = read_record(folder)
    path = folder / "metrics.jsonl"
    latest: dict[int, Evaluation] = {}
    try:
        label, seed = algorithm or str(record["algorithm"]), int(record["seed"])
        for line in read_lines(path):
            if line["kind"] == "evaluation":
                # a resumed run may repeat what followed its last checkpoint
                latest[int(line["iteration"])] = _evaluation(line)
    except KeyError as error:
        raise CheckpointError(f"{folder}: a record lacks {error}; run it again") from None
    if not latest:
        raise CheckpointError(f"{path}: holds no evaluation; delete {folder} and run it again")
    evaluations = tuple(latest[iteration] for iteration in sorted(latest))
    return Run(folder=folder, algorithm=label, seed=seed, record=record, evaluations=evaluations)


def _evaluation(line: dict[str, Any]) -> Evaluation:
    return Evaluation(
        iteration=int(line["iteration"]),
        environment_steps=int(line["environment_steps"]),
        generated_tokens=int(line["generated_tokens"]),
        updates=int(line["updates"]),
        wall_seconds=float(line["wall_seconds"]),
        metrics={name: finite(value) for name, value in line["metrics"].items()},
    )


def finite(value: Any) -> float | None:
    """The number, or None for what JSON cannot carry (NaN, infinities) and for no number."""
    if isinstance(value, int | float) and math.isfinite(value):
        return float(value)
    return None
