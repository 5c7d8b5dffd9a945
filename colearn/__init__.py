"""colearn trains teams of language models jointly and deploys each agent independently.

    train(task, models=..., reward=...)     one run from Python objects
    Trainer(task, ...).run()                the same run; its parts are attributes
    Result(run)                             what `train` returns: metrics, curve, folder
    load_config("quickstart")               settings from a shipped config, a .yaml or a mapping
    compare(task, "out", algorithms=...)    algorithms x seeds on one task; writes a report
    ComparisonResult(folder)                what `compare` returns: report, summary, folder
    Experiment(config, "out").run()         one run: one algorithm, one seed
    open_run("out"), read_run("out")        a run's folder: its config, checkpoints and metrics
    write_report("out")                     the report of finished runs
    load_critic("critic-team")              a critic that was exported from a run
    LoadedCritic(...).score(episode)        its values, by agent and turn

The interfaces to implement are in `colearn.contract` (`DecPOMDP` for a task);
`colearn.testing.check_task` checks a task. On the command line: `colearn --help`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .config import Config, load_config
    from .experiment.loop import Experiment
    from .record import open_run, read_run
    from .report import write_report
    from .trainer.api import Trainer, train
    from .trainer.compare import compare
    from .trainer.result import ComparisonResult, Result
    from .types import Tree
    from .value_model.loaded import LoadedCritic, load_critic

__version__ = "0.1.0"

_HOMES = {
    "Config": "config",
    "load_config": "config",
    "Experiment": "experiment.loop",
    "ComparisonResult": "trainer.result",
    "compare": "trainer.compare",
    "write_report": "report",
    "open_run": "record",
    "read_run": "record",
    "Tree": "types",
    "Result": "trainer.result",
    "Trainer": "trainer.api",
    "train": "trainer.api",
    "LoadedCritic": "value_model.loaded",
    "load_critic": "value_model.loaded",
}
"""The top-level names and their modules, imported lazily."""

# spelled out for type checkers
__all__ = [
    "ComparisonResult",
    "Config",
    "Experiment",
    "LoadedCritic",
    "Result",
    "Trainer",
    "Tree",
    "__version__",
    "compare",
    "load_config",
    "load_critic",
    "open_run",
    "read_run",
    "train",
    "write_report",
]


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'colearn' has no attribute '{name}'")
    return getattr(importlib.import_module(f"colearn.{_HOMES[name]}"), name)
