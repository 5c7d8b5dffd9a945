"""Defines the file formats in the folders of runs, comparisons and suites.

RUN/config.yaml  run.json  metrics.jsonl  episodes.jsonl  checkpoints/step-N/
COMPARISON/compare.json  runs/LABEL-sSEED/       SUITE/suite.json  TASK/
"""

from .checkpoints import Checkpoint, Checkpoints
from .comparison import (
    ComparisonEntry,
    ComparisonFolder,
    ComparisonRecord,
    SuiteFolder,
    SuiteRecord,
)
from .difference import first_difference
from .fields import Best, Episode, Line, Progress, RecordedTurn, RunRecord
from .folder import Run, RunFolder, Status, open_run, read_run
from .writer import RunWriter

__all__ = [
    "Best",
    "Checkpoint",
    "Checkpoints",
    "ComparisonEntry",
    "ComparisonFolder",
    "ComparisonRecord",
    "Episode",
    "Line",
    "Progress",
    "RecordedTurn",
    "Run",
    "RunFolder",
    "RunRecord",
    "RunWriter",
    "Status",
    "SuiteFolder",
    "SuiteRecord",
    "first_difference",
    "open_run",
    "read_run",
]
