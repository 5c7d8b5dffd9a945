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
    load_agent("out", "planner")            an agent of a run, or an exported one: .act, .chat
    load_team("out")                        all agents of a run, by name
    evaluate(task, "agents")                the metrics of such agents on a task
    load_critic("critic-team")              a critic that was exported from a run
    LoadedCritic(...).score(episode)        its values, by agent and turn

The interfaces to implement are in `colearn.contract` (`DecPOMDP` for a task);
`colearn.contract.testing.check_task` checks a task. On the command line: `colearn --help`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .config import Config, load_config
    from .contract.types import Tree
    from .deploy.evaluate import evaluate
    from .deploy.loaded import load_agent, load_team
    from .entry.python.api import Trainer, train
    from .entry.python.compare import compare
    from .entry.python.result import ComparisonResult, Result
    from .methods.values.loaded import LoadedCritic, load_critic
    from .runs.record import open_run, read_run
    from .runs.report import write_report
    from .training.loop import Experiment

__version__ = "0.1.0"

_HOMES = {
    "Config": "config",
    "load_config": "config",
    "Experiment": "training.loop",
    "ComparisonResult": "entry.python.result",
    "compare": "entry.python.compare",
    "evaluate": "deploy.evaluate",
    "write_report": "runs.report",
    "open_run": "runs.record",
    "read_run": "runs.record",
    "Tree": "contract.types",
    "Result": "entry.python.result",
    "Trainer": "entry.python.api",
    "train": "entry.python.api",
    "LoadedCritic": "methods.values.loaded",
    "load_agent": "deploy.loaded",
    "load_critic": "methods.values.loaded",
    "load_team": "deploy.loaded",
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
    "evaluate",
    "load_agent",
    "load_config",
    "load_critic",
    "load_team",
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
