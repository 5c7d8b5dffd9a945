"""colearn: decentralised training of language-model teams."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .comparison import compare
    from .config import Config, load_config
    from .experiment.loop import Experiment
    from .record import open_run, read_run
    from .report import write_report
    from .types import Tree

__version__ = "0.1.0"

_HOMES = {
    "Config": "config",
    "load_config": "config",
    "Experiment": "experiment.loop",
    "compare": "comparison",
    "write_report": "report",
    "open_run": "record",
    "read_run": "record",
    "Tree": "types",
}
"""What a program starts from, and the module that has it; loaded when it is asked for."""

# spelled out, as type checkers read no other form
__all__ = [
    "Config",
    "Experiment",
    "Tree",
    "__version__",
    "compare",
    "load_config",
    "open_run",
    "read_run",
    "write_report",
]


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'colearn' has no attribute '{name}'")
    return getattr(importlib.import_module(f"colearn.{_HOMES[name]}"), name)
