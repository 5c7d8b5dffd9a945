"""Defines the file formats in the folders of runs, comparisons and suites.

RUN/config.yaml  run.json  metrics.jsonl  episodes.jsonl  checkpoints/step-N/
COMPARISON/compare.json  runs/LABEL-sSEED/       SUITE/suite.json  TASK/
"""

from .comparison import (
    ComparisonEntry,
    ComparisonFolder,
    ComparisonRecord,
    SuiteFolder,
)
from .difference import first_difference
from .fields import Best, Episode, Line, Progress, RunRecord
from .folder import Run, RunFolder, Status, open_run, read_run
from .writer import RunWriter

__all__ = [
    "Best",
    "ComparisonEntry",
    "ComparisonFolder",
    "ComparisonRecord",
    "Episode",
    "Line",
    "Progress",
    "Run",
    "RunFolder",
    "RunRecord",
    "RunWriter",
    "Status",
    "SuiteFolder",
    "first_difference",
    "open_run",
    "read_run",
]
