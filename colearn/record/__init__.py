"""What lies on disk: a run's folder and a comparison's, written and read in one place.

RUN/config.yaml  run.json  metrics.jsonl  episodes.jsonl  checkpoints/step-N/
COMPARISON/compare.json  runs/LABEL-sSEED/       SUITE/suite.json  TASK/
"""

from .checkpoints import Checkpoint, Checkpoints
from .comparison import ComparisonFolder, ComparisonRecord, Entry, SuiteFolder, SuiteRecord
from .difference import first_difference
from .fields import Best, Episode, Line, Progress, RunRecord, Turn
from .folder import Run, RunFolder, Status, open_run, read_run
from .writer import RunWriter

__all__ = [
    "Best",
    "Checkpoint",
    "Checkpoints",
    "ComparisonFolder",
    "ComparisonRecord",
    "Entry",
    "Episode",
    "Line",
    "Progress",
    "Run",
    "RunFolder",
    "RunRecord",
    "RunWriter",
    "Status",
    "SuiteFolder",
    "SuiteRecord",
    "Turn",
    "first_difference",
    "open_run",
    "read_run",
]
